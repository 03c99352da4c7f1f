"""Arrays that a traced function captures, which become constants of its program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.program.view import ProgramView
from jaxsight.text.units import MIB
from jaxsight.wire.program import CONSTANT, ProgramValue, Step

LARGE = MIB
"""Bytes from which a captured array is large, a choice: lower reports each table of constants,
higher misses what every executable then holds."""


@dataclass(frozen=True, slots=True)
class CapturedArray:
    """An array that the traced function captures."""

    type: str
    """As jaxprs print it: `f32[512,512]`."""
    equal_to: str
    """An expression of `jnp` with the same values; empty if none is known."""


def captured(view: ProgramView) -> Iterator[tuple[ProgramValue, Sequence[Step]]]:
    """Yield the large captured arrays that are used, with the equations that read them."""
    flow = view.flow
    for number, value in enumerate(flow.values):
        if value.origin != CONSTANT or value.bytes < LARGE or flow.of(number) != number:
            continue
        if users := flow.used_by(number):
            yield value, users
