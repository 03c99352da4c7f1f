"""JX218: a complex FFT of real numbers computes each frequency twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.matrices import called, readers
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import ELEMENTWISE, SHAPED, Flow, Reading, elements, is_known, numbers
from jaxsight.rules.rule import Rule
from jaxsight.rules.slices import reads
from jaxsight.tracer.program import Step

RULE = Rule(
    "JX218",
    "complex-fft",
    "Complex FFT of real numbers.",
    severity="information",
)

LEAST = 64
"""Numbers that are transformed."""

_FORWARD = {"fft": "rfft", "fft2": "rfft2", "fftn": "rfftn"}
_INVERSE = {"ifft": "irfft", "ifft2": "irfft2", "ifftn": "irfftn"}
_KINDS = {"FFT": 0, "IFFT": 1}
_MOVES = SHAPED | {"pad", "copy", "stop_gradient"}
_TURNS = frozenset({"transpose", "copy"})
_SIDED = frozenset({"gt", "lt", "ge", "le", "sign", "select_n", "max", "min", "clamp"})
"""Primitives by which factors may differ between a frequency and its opposite."""
_FREQUENCIES = ("fftfreq",)


@dataclass(frozen=True, slots=True)
class ComplexFft:
    """A transform of real numbers."""

    inverse: bool
    """Whether it is the inverse transform of a pair whose result is real."""
    length: int


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield transforms of real numbers of which half is read, and pairs whose result is real."""
    flow = reading.flow
    for step in flow.steps.values():
        if step.primitive != "fft" or step.backward or step.path in flow.ruled:
            continue
        if elements(flow.value(step.results[0])) < LEAST:
            continue
        name = called(reading.quote(step.path))
        length = numbers(step, "fft_lengths")[-1:]
        if name in _FORWARD and _is_kind(step, "FFT") and length and _is_of_real(flow, step):
            if _is_half_read(flow, step, length[0]):
                yield Noticed(
                    "complex FFT of real numbers: only the first half of "
                    f"{length[0]:,} frequencies is read",
                    step.path,
                    help=f"use `jnp.fft.{_FORWARD[name]}`, which computes this half alone",
                    data=ComplexFft(False, length[0]),
                )
        elif (
            name in _INVERSE
            and _is_kind(step, "IFFT")
            and length
            and _gives_real(flow, step)
            and _comes_from_real(reading, step)
        ):
            forward = _FORWARD[name.removeprefix("i")]
            yield Noticed(
                "complex FFTs of real numbers with a real result compute each frequency twice",
                step.path,
                help=f"use `jnp.fft.{forward}` and `jnp.fft.{_INVERSE[name]}`",
                notes=("`jnp.fft.rfftfreq` gives the frequencies that these compute",),
                data=ComplexFft(True, length[0]),
            )


def _is_kind(step: Step, kind: str) -> bool:
    """Whether a transform is of a kind, which JAX prints as a number or by name."""
    text = dict(step.parameters).get("fft_type", "")
    return text == str(_KINDS[kind]) or text.rpartition(".")[2].strip("'") == kind


def _is_of_real(flow: Flow, step: Step) -> bool:
    """Whether what is transformed was real, and made complex for that."""
    made = flow.made_by(step.operands[0])
    for _ in range(10):
        if made is None or made.primitive not in _MOVES | {"convert_element_type"}:
            break
        before = flow.value(made.operands[0]).dtype
        if made.primitive == "convert_element_type" and before.startswith(("float", "bfloat")):
            return True
        made = flow.made_by(made.operands[0])
    return False


def _is_half_read(flow: Flow, step: Step, length: int) -> bool:
    """Whether only frequencies that a transform of real numbers gives are read."""
    axis = len(flow.value(step.results[0]).shape) - 1
    found = reads(flow, step.results[0], axis, ELEMENTWISE)
    return bool(found) and all(0 <= each.first <= each.last <= length // 2 for each in found or ())


def _gives_real(flow: Flow, step: Step) -> bool:
    """Whether only the real part of a transform is read."""
    used = readers(flow, step.results[0], _TURNS | SHAPED)
    return bool(used) and all(each.primitive == "real" for each in used or ())


def _comes_from_real(reading: Reading, step: Step) -> bool:
    """Whether an inverse transform is of transforms of real numbers and of factors that are alike
    for a frequency and its opposite: numbers, and what is computed from `fftfreq`.
    """
    flow, transforms = reading.flow, 0
    waiting, seen = [flow.of(step.operands[0])], set[int]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        if len(seen) > 200:
            return False
        value, made = flow.values[number], flow.made_by(number)
        if made is None:
            if elements(value) > 1 or (value.dtype.startswith("complex") and not is_known(value)):
                return False
        elif made.primitive == "fft":
            if not _is_kind(made, "FFT") or not _is_of_real(flow, made):
                return False
            transforms += 1
        elif called(reading.quote(made.path)) in _FREQUENCIES:
            continue
        elif made.primitive in (ELEMENTWISE | SHAPED) - _SIDED - {"slice", "rev"}:
            waiting += map(flow.of, made.operands)
        else:
            return False
    return transforms > 0
