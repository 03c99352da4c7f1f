"""Where two programs of one function differ."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from jaxsight.rules.rule import Decides
from jaxsight.wire.chunks import Span
from jaxsight.wire.program import INPUT, RESULT, Body, Program, Step


@dataclass(frozen=True, slots=True)
class ProcessDifference:
    """Two processes trace different programs of a function."""

    decides: Decides
    process: int
    """The process whose program differs from that of process 0."""
    primitive: str
    """That of the first equation that differs; empty if only captured arrays do."""
    span: Span | None
    """Its place."""


def first_difference(first: Program, other: Program) -> tuple[Step | None, Span | None]:
    """Return the first equation of one program that is not one of the other, and its place.

    Both are `None` if the equations are the same.
    """
    return _Comparison(first, other).between(first.body, other.body, None)


class _Comparison:
    """Two programs of one function."""

    def __init__(self, first: Program, other: Program) -> None:
        self._programs = first, other

    def between(
        self, first: Body, other: Body, around: Span | None
    ) -> tuple[Step | None, Span | None]:
        """Return the first difference of two bodies in an equation at `around`."""
        for one, two in itertools.zip_longest(first.steps, other.steps):
            if one is not None and two is not None and self._begins_as(one, two):
                for inner, opposite in zip(one.bodies, two.bodies, strict=True):
                    step, span = self.between(inner, opposite, one.span or around)
                    if step is not None:
                        return step, span
                if _ends(one) == _ends(two):
                    continue
            step = one or two
            assert step is not None  # one of them is longer
            return step, next(_spans(step), around)
        return None, None

    def _begins_as(self, one: Step, two: Step) -> bool:
        """Return whether two equations differ in their inner programs at most, or what follows."""
        first, other = (
            (step.primitive, self._operands(step, program), [body.inputs for body in step.bodies])
            for step, program in zip((one, two), self._programs, strict=True)
        )
        return first == other

    def _operands(self, step: Step, program: Program) -> list[object]:
        """Return what an equation reads: numbers of values, and scalars and captured arrays."""
        values = [program.values[operand] for operand in step.operands]
        return [
            operand if value.origin in (INPUT, RESULT) else replace(value, weak=False)
            for operand, value in zip(step.operands, values, strict=True)
        ]


def _ends(step: Step) -> object:
    """Return what else an equation is."""
    return step.results, step.parameters, [(body.name, body.outputs) for body in step.bodies]


def _spans(step: Step) -> Iterator[Span]:
    """Yield the places of an equation, or else of those in it."""
    if step.span is not None:
        yield step.span
    for body in step.bodies:
        for inner in body.steps:
            yield from _spans(inner)
