"""Proof that a written function is the StableHLO program that it was written from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import jax
import numpy as np
from jax import export

from jaxsight_source.compat.lowered import mlir
from jaxsight_source.compat.staging import opened
from jaxsight_source.jaxprs.arguments import drawn_array
from jaxsight_source.proof.running import too_much
from jaxsight_source.stablehlo.canonical import canonical
from jaxsight_source.stablehlo.program import StablehloProgram

MOST_EQUATIONS = 2_000
"""The maximum number of equations of a program that runs here.

A choice: XLA's CPU compiler takes about a millisecond for each, twice.
"""

_LONGEST = 100
"""The maximum length of a quoted line, in characters."""


@dataclass(frozen=True, slots=True)
class SameProgram:
    """How a written function compares with the StableHLO that it was written from."""

    difference: str
    """The first difference of the StableHLO that it lowers to; empty if there is none."""
    ran: bool
    """Whether both ran, with the same bits."""
    not_run: str
    """Why they did not run."""


def prove(
    source: str | bytes, program: StablehloProgram, function: Callable[..., object]
) -> SameProgram:
    """Lower a function and compare with the StableHLO; run both, and compare the bits.

    Args:
        source: the StableHLO, as `read` takes it.
        program: what `read` returned.
        function: the written function, which takes the program's arguments.
    """
    with program.types():
        different = difference(source, program, function)
        reason = too_much(opened(program.jaxpr), is_drawn=True, most_equations=MOST_EQUATIONS)
        if program.devices > 1:
            reason = "it is for several devices"
        if reason:
            return SameProgram(different, ran=False, not_run=reason)
        generator = np.random.default_rng(0)
        leaves = [drawn_array(one, generator, integers=(0, 2)) for one in program.jaxpr.in_avals]
        try:
            expected = mlir.run(source, leaves)
        except Exception as error:  # noqa: BLE001 - a program for another device, or other devices
            why = " ".join(str(error).split())[:_LONGEST]
            return SameProgram(different, ran=False, not_run=f"it does not run here: {why}")
        found = jax.tree.leaves(jax.jit(function)(*leaves))
    for position, (one, other) in enumerate(zip(expected, found, strict=True)):
        if np.asarray(one).tobytes() != np.asarray(other).tobytes():
            different = different or f"result {position} has other bits"
            return SameProgram(different, ran=False, not_run=f"result {position} has other bits")
    return SameProgram(different, ran=True, not_run="")


def difference(
    source: str | bytes, program: StablehloProgram, function: Callable[..., object]
) -> str:
    """Return the first difference from the closest way of lowering; empty if one has none."""
    expected = canonical(source)
    structs = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in program.jaxpr.in_avals]
    differences = []
    with program.types():
        for text in _lowered(program, function, structs, exports_first=isinstance(source, bytes)):
            different = first_difference(expected, canonical(text))
            if not different:
                return ""
            differences.append(different)
    return differences[0]


def _lowered(
    program: StablehloProgram,
    function: Callable[..., object],
    structs: Sequence[jax.ShapeDtypeStruct],
    exports_first: bool,
) -> Iterator[str | bytes]:
    """Yield a function's StableHLO: as `lower` prints it, and as `export` stores it.

    `export` replaces operations of CHLO, which texts have.
    """
    jitted = jax.jit(function, keep_unused=True)
    checks = [export.DisabledSafetyCheck.custom_call(call.target) for call in program.opaque]

    def exported() -> bytes:
        return export.export(jitted, disabled_checks=checks)(*structs).mlir_module_serialized

    def lowered() -> str:
        return jitted.lower(*structs).as_text()

    for way in (exported, lowered) if exports_first else (lowered, exported):
        yield way()


def first_difference(expected: str, found: str) -> str:
    """Return the first lines that differ in two canonical texts; empty if they are the same."""
    ours, theirs = expected.splitlines(), found.splitlines()
    for line, other in zip(ours, theirs, strict=False):
        if line != other:
            return f"{_short(line)}, lowered again: {_short(other)}"
    if len(ours) == len(theirs):
        return ""
    return f"it has {len(ours)} operations, lowered again {len(theirs)}"


def _short(line: str) -> str:
    text = line.strip()
    return f"`{text[:_LONGEST]}…`" if len(text) > _LONGEST else f"`{text}`"
