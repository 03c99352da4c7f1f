"""JX218: a complex FFT of real numbers computes each frequency twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.matrices import readers
from jaxsight.rules.program.slices import reads
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.source.text import Edit, Range
from jaxsight.wire.primitives import ELEMENTWISE, SHAPED
from jaxsight.wire.program import Step

RULE = Rule(__name__, "Complex FFT of real numbers.", severity="information")

LEAST = 64
"""Numbers that are transformed, a choice: of fewer, either transform takes its launch."""

_FORWARD = {"fft": "rfft", "fft2": "rfft2", "fftn": "rfftn"}
_INVERSE = {"ifft": "irfft", "ifft2": "irfft2", "ifftn": "irfftn"}
_KINDS = {"FFT": 0, "IFFT": 1}
_MOVES = SHAPED | {"pad", "copy", "stop_gradient"}
_TURNS = frozenset({"transpose", "copy"})
_NEAR = 10
"""Equations from a conversion to complex numbers to the transform: `jnp.fft` adds up to three
(`_fft_core` in jax/_src/numpy/fft.py), the user may add others."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield transforms of real numbers of which half is read, and pairs whose result is real."""
    flow = view.flow
    for step in flow.forward_steps("fft"):
        name, length = view.called(step), step.numbers("fft_lengths")[-1:]
        if flow.value(step.results[0]).elements < LEAST or not length:
            continue
        if name in _FORWARD and _is_of_real(flow, step) and _is_half_read(flow, step, length[0]):
            yield Violation(
                "complex FFT of real numbers: only the first half of "
                f"{length[0]:,} frequencies is read",
                step.path,
                help=f"use `jnp.fft.{_FORWARD[name]}`, which computes this half alone",
            )
        elif name in _INVERSE and _is_kind(step, "IFFT") and _gives_real(view, step):
            forward = _FORWARD[name.removeprefix("i")]
            yield Violation(
                "complex FFTs of real numbers with a real result compute each frequency twice",
                step.path,
                help=f"use `jnp.fft.{forward}` and `jnp.fft.{_INVERSE[name]}`",
                notes=("`jnp.fft.rfftfreq` gives the frequencies that these compute",),
            )


def _is_kind(step: Step, kind: Literal["FFT", "IFFT"]) -> bool:
    """Whether a transform is of a kind, which JAX prints as a number or by name."""
    text = dict(step.parameters).get("fft_type", "")
    return text.rpartition(".")[2].strip("'") in (str(_KINDS[kind]), kind)


def _is_of_real(flow: Flow, step: Step) -> bool:
    """Whether a transform is of what was real, and made complex for that."""
    number = step.operands[0]
    for _ in range(_NEAR if _is_kind(step, "FFT") else 0):
        maker = flow.producer(number)
        if maker is None or maker.primitive not in _MOVES | {"convert_element_type"}:
            break
        number = maker.operands[0]
        before = flow.value(number).dtype
        if maker.primitive == "convert_element_type" and before.startswith(("float", "bfloat")):
            return True
    return False


def _is_half_read(flow: Flow, step: Step, length: int) -> bool:
    """Whether only frequencies that a transform of real numbers gives are read."""
    axis = len(flow.value(step.results[0]).shape) - 1
    parts = reads(flow, step.results[0], axis, ELEMENTWISE)
    return bool(parts) and all(0 <= part.first <= part.last <= length // 2 for part in parts or ())


_SYMMETRIC = (ELEMENTWISE - {"nextafter", "imag", "complex"}) | {
    "add_any", "conj", "convert_element_type", "copy", "stop_gradient", "broadcast_in_dim",
    "reshape", "squeeze", "expand_dims", "transpose",
}  # fmt: skip
"""Primitives whose result is the conjugate of itself at the opposite frequency, as the transform of
real numbers is, where all operands are."""


def _gives_real(view: ProgramView, step: Step) -> bool:
    """Return whether the result of an inverse transform is real, and read as such.

    It is where the operand is computed from transforms of real numbers, and real numbers.
    """
    flow = view.flow
    used = readers(flow, step.results[0], _TURNS | SHAPED)
    if not used or any(reader.primitive != "real" for reader in used):
        return False
    sources = flow.sources(step.operands[0], _SYMMETRIC) or set()
    transforms = {number for number in sources if _is_transform(flow, number)}
    values = [flow.values[number] for number in sources - transforms]
    are_real = all(v.elements == 1 and not v.dtype.startswith("complex") for v in values)
    return bool(transforms) and are_real


def _is_transform(flow: Flow, number: int) -> bool:
    step = flow.producer(number)
    return step is not None and step.primitive == "fft" and _is_of_real(flow, step)


# The fix: transform real numbers by `rfft`, and back by `irfft`.

_MODULE = "jax.numpy.fft."


@RULE.fixes("`rfft` and `irfft` for real numbers")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `rfft` for `fft`, and `irfft(…)` for `ifft(…).real`."""
    for call in context.find(ast.Call):
        name = context.called(call.func).removeprefix(_MODULE)
        if name in _FORWARD:
            yield Candidate(f"Use `r{name}`", _renamed(context, call))
            return
        if name in _INVERSE and len(call.args) == 1 and not call.keywords:
            yield from _pair(context, call, name)
            return


def _renamed(context: FixContext, call: ast.Call) -> tuple[Edit, ...]:
    """Return the edit that calls the function for real numbers."""
    if not isinstance(call.func, ast.Attribute):
        return ()
    name = call.func.attr
    real = f"ir{name[1:]}" if name.startswith("i") else f"r{name}"
    return (context.replace(call.func, f"{context.text(call.func.value)}.{real}"),)


def _pair(context: FixContext, call: ast.Call, name: str) -> Iterator[Candidate]:
    """Yield the inverse transform of real ones, where all of them are in its argument."""
    aval = context.aval_of(call)
    match context.parents.get(call):
        case ast.Attribute(attr="real") as expression:
            pass
        case ast.Call(func=function) as expression if context.called(function) == "jax.numpy.real":
            pass
        case _:
            return
    inner = [
        node
        for node in ast.walk(call.args[0])
        if isinstance(node, ast.Call)
        and context.called(node.func).removeprefix(_MODULE) in _FORWARD
    ]
    if not inner or aval is None or not aval.shape or aval.shape[-1] % 2:
        return
    edits = [edit for node in (call, *inner) for edit in _renamed(context, node)]
    # The transform is real by itself: what takes its real part is dropped.
    around, within = context.range(expression), context.range(call)
    before = Edit(Range(around.start, within.start), "")
    after = Edit(Range(within.end, around.end), "")
    yield Candidate(f"Use `r{name[1:]}` and `ir{name[1:]}`", (*edits, before, after))
