"""JX218: a complex FFT of real numbers computes each frequency twice."""

# Longer than most rules: the symmetry of all that is multiplied between two transforms is followed.

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.loops import loop_of
from jaxsight.rules.program.matrices import readers
from jaxsight.rules.program.slices import reads
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.source.text import Edit, Range
from jaxsight.wire.primitives import ELEMENTWISE, SHAPED
from jaxsight.wire.program import ProgramValue, Step

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


def _gives_real(view: ProgramView, step: Step) -> bool:
    """Return whether the result of an inverse transform is real, and read as such.

    It is where the operand is a transform of real numbers, times factors that keep its symmetry.
    """
    used = readers(view.flow, step.results[0], _TURNS | SHAPED)
    if not used or any(reader.primitive != "real" for reader in used):
        return False
    symmetries = _Symmetries(view)
    return symmetries.of(step.operands[0]) == 1 and symmetries.transforms > 0


class _Symmetries:
    """Find out how values at a frequency and at its opposite are related."""

    def __init__(self, view: ProgramView) -> None:
        self._view = view
        self._known: dict[int, int] = {}
        self._outer = {
            inner: outer
            for step in view.flow.steps.values()
            if step.primitive == "scan" and (loop := loop_of(view.flow, step)) is not None
            for inner, outer in loop.captured.items()
        }
        self.transforms = 0
        """How many transforms of real numbers the values come from."""

    def of(self, number: int) -> int:
        """Return 1 for Hermitian symmetry, -1 for the same with another sign, 0 where unknown.

        A transform of real numbers has Hermitian symmetry: each value is the conjugate of its
        opposite.
        """
        number = self._view.flow.of(number)
        while number in self._outer:
            number = self._view.flow.of(self._outer[number])
        if number not in self._known:
            self._known[number] = 0 if len(self._known) > _MOST else self._found(number)
        return self._known[number]

    def _found(self, number: int) -> int:
        flow = self._view.flow
        step = flow.producer(number)
        if step is None:
            return _of_number(flow.values[number])
        if self._view.called(step) == "fftfreq":
            return -1
        if step.primitive == "fft":
            is_real = _is_of_real(flow, step)
            self.transforms += is_real
            return int(is_real)
        if step.primitive not in _SYMMETRIC or not step.operands:
            return 0
        signs = [self.of(operand) for operand in step.operands]
        if 0 in signs:
            return 0
        match step.primitive:
            case "mul" | "div":
                return signs[0] * signs[1]
            case "integer_pow":
                power = step.parameter("y")
                return signs[0] ** abs(power) if isinstance(power, int) else 0
            case "imag":
                return -signs[0]
            case "complex":
                return signs[0] if signs[0] == -signs[1] else 0
            case name if name in _EVEN:
                return 1
            case name if name in _ODD:
                return signs[0] if len(set(signs)) == 1 else 0
        return int(set(signs) == {1})


_MOST = 200
"""Values of a program that are looked at: those beyond them have no symmetry, more take long."""

_EVEN = frozenset({"abs", "square", "cos", "cosh"})
_ODD = frozenset(
    {
        "add", "add_any", "sub", "neg", "real", "conj", "sin", "tan", "sinh", "tanh", "asin",
        "atan", "asinh", "erf", "cbrt", "convert_element_type", "copy", "stop_gradient",
        "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose",
    }
)  # fmt: skip
"""Primitives whose result has the symmetry that all of their operands have."""
_SYMMETRIC = _EVEN | _ODD | (ELEMENTWISE - {"nextafter"})
"""Of those that are in neither set, results have it where all operands are like transforms."""


def _of_number(value: ProgramValue) -> int:
    """Return the symmetry of one number, the same for all frequencies."""
    if value.elements != 1:
        return 0
    if not value.dtype.startswith("complex"):
        return 1
    try:
        number = complex(value.said)
    except ValueError:
        return 0
    return 1 if number.imag == 0 else -1 if number.real == 0 else 0


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
