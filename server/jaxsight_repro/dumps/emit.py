"""Write the repro of a dumped program, and run it in a fresh process to see that it fails."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jax
import numpy as np
from jax.extend.core import jaxpr_as_fun

from jaxsight.files import reading
from jaxsight_repro import environment
from jaxsight_repro.checks.base import parse
from jaxsight_repro.compat import configuration
from jaxsight_repro.dumps.choosing import ChosenDump
from jaxsight_repro.emit.data import SEEDS
from jaxsight_repro.emit.from_case import Emitted, checked_run
from jaxsight_repro.emit.repro_file import About, write
from jaxsight_repro.failures import RunFailure
from jaxsight_repro.values import ConcreteValue
from jaxsight_source.compat import avals
from jaxsight_source.compat.staging import evaluate, opened, with_parameters
from jaxsight_source.hlo import formats
from jaxsight_source.hlo.reading import flattened, stablehlo_of
from jaxsight_source.hlo.reading import read as read_hlo
from jaxsight_source.programs import contents
from jaxsight_source.programs.contents import Content
from jaxsight_source.stablehlo.program import StablehloProgram, UnreadableProgram
from jaxsight_source.stablehlo.proof import difference
from jaxsight_source.stablehlo.reading import read as read_stablehlo
from jaxsight_source.text.names import identifier

_ASSUMED = "The dump has no arguments: those of `inputs` are assumed."


def emit(chosen: ChosenDump, out: Path, *, check: str = "", timeout: float) -> Emitted:
    """Write the repro of a dumped program to `out`, and run it.

    Args:
        check: what the program does wrong; empty for any failure.
        timeout: seconds after which it hangs.

    Raises:
        UnreadableProgram: the dump cannot be read.
        CannotEmit: the program cannot be written.
    """
    checked = parse(check)
    dumped = read(chosen.path)
    program, notes = dumped.with_library_calls(), [*dumped.notes]
    options = {"jax_enable_x64": True} if program.x64 else {}
    configuration.apply(options)
    name = identifier(program.name, "program")
    jaxpr = opened(program.jaxpr)

    def main(*flat: object) -> object:
        results = evaluate(jaxpr, *flat)
        return results[0] if len(results) == 1 else tuple(results)

    main.__name__ = name
    values = arguments(program)
    if values:
        notes.append(_ASSUMED)
    if opaque := ", ".join(dict.fromkeys(call.target for call in program.opaque)):
        notes.append(f"Calls of foreign functions need these registered: {opaque}.")
    about = About(
        RunFailure("finished"),
        environment.current(options),
        checked.lines(jitted=True),
        origin=str(chosen.path.name),
        notes=notes,
    )
    repro = write(jax.jit(with_parameters(main, program.names)), values, program.names, about)
    return checked_run(repro, out, timeout, checked)


@dataclass(frozen=True, slots=True)
class DumpedProgram:
    """A program that was read from a file.

    Attributes:
        artifact: its StableHLO.
        notes: what is assumed about it, a sentence each.
    """

    program: StablehloProgram
    artifact: str | bytes
    notes: tuple[str, ...] = ()

    def with_library_calls(self) -> StablehloProgram:
        """Return the program with calls of library functions, if these are the same StableHLO."""
        try:
            found = read_stablehlo(self.artifact, readable=True)
            different = difference(self.artifact, found, jaxpr_as_fun(found.jaxpr))
        except UnreadableProgram:
            return self.program
        return self.program if different else replace(found, names=self.program.names)


def read(path: Path) -> DumpedProgram:
    """Return the program of a file.

    Raises:
        UnreadableProgram: it has no known format, or no JAX.
        OSError: it cannot be read.
    """
    content = reading.data(path)
    artifact: str | bytes
    match contents.content_of(content):
        case Content.HLO:
            text = content.decode("utf-8", "replace")
            missing = formats.elided(text)
            notes = [f"The dump leaves out the numbers of constants ({missing}): ones here."]
            complete = formats.with_ones(text)
            assumed = tuple(notes) if missing else ()
            return DumpedProgram(read_hlo(complete), stablehlo_of(complete), assumed)
        case Content.PROTO:
            return DumpedProgram(read_hlo(content), stablehlo_of(content))
        case Content.STABLEHLO:
            artifact = flattened(content.decode("utf-8", "replace"))
        case Content.BYTECODE:
            artifact = content
        case Content.EXPORTED:
            artifact = contents.deserialized(content).mlir_module_serialized
        case _:
            raise UnreadableProgram("expected HLO, StableHLO or a serialized export")
    return DumpedProgram(read_stablehlo(artifact), artifact)


def arguments(program: StablehloProgram) -> list[ConcreteValue]:
    """Return arguments for a program: drawn from the normal distribution, or counted from zero."""
    return [
        ConcreteValue(_numbers(var.aval.shape, var.aval.dtype, position))
        for position, var in enumerate(program.jaxpr.jaxpr.invars)
    ]


def _numbers(shape: Sequence[int], dtype: np.dtype, seed: int) -> np.ndarray:
    size = math.prod(shape)
    if avals.is_subtype(dtype, np.inexact):
        drawn = jax.random.normal(jax.random.key(SEEDS[seed % len(SEEDS)]), shape)
        return np.asarray(drawn.astype(dtype))
    if dtype == np.bool_:
        return np.ones(shape, dtype)
    # Small numbers, which are within bounds if they are positions.
    return np.asarray(np.arange(size).reshape(shape) % 4, dtype)
