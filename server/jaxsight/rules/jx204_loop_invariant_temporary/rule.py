"""JX204: a large loop-invariant array is kept in memory, though it is cheap to compute.

Computed inside the loop body it would take no memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import ELEMENTWISE, SHAPED, Flow, Reading, captured, is_known
from jaxsight.rules.rule import Rule
from jaxsight.tracer.program import Step
from jaxsight.units import MIB, size

RULE = Rule(
    "JX204",
    "loop-invariant-temporary",
    "Cheap loop-invariant array kept in memory for a whole loop.",
    severity="warning",
)
LARGE = MIB // 2
_LOOPS = ("scan", "fori_loop", "while_loop", "map")
_CHEAP = ELEMENTWISE | SHAPED | {"iota", "concatenate"}
_PRODUCTS = ("dot_general", "conv_general_dilated")


@dataclass(frozen=True, slots=True)
class LoopInvariant:
    """An array that a loop keeps in memory."""

    bytes: int
    type: str
    """As jaxprs print it: `f32[1024,512]`."""


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Find arrays of 512 KiB or more that the user's loops capture and that are cheap to compute.

    Cheap is what elementwise operations compute from constants, counters and arrays of at most a
    64th of the size.
    """
    flow = reading.flow
    for step in flow.steps.values():
        if not reading.wrote(step.path, *_LOOPS):
            continue
        for number in captured(step):
            value = flow.value(number)
            maker = flow.made_by(number)
            if value.bytes < LARGE or maker is None:
                continue
            sources = flow.sources(number, lambda each: each.primitive in _CHEAP)
            if sources is None or not all(
                is_known(flow.values[each]) or flow.values[each].bytes * 64 <= value.bytes
                for each in sources
            ):
                continue
            if not _kept(reading, value.shape) or _is_multiplied(flow, step, value.text):
                continue
            yield Noticed(
                f"loop-invariant array ({size(value.bytes)}) is kept in memory for the whole loop",
                maker.path,
                help="compute it inside the loop body, where it fuses with the code that uses it",
                notes=(
                    f"{value.text} is computed from counters and small arrays alone",
                    f"the loop is {reading.quoted(step.path)}",
                ),
                data=LoopInvariant(value.bytes, value.text),
                related=((step.path, "the loop"),),
            )


def _kept(reading: Reading, shape: tuple[int, ...]) -> bool:
    """Whether a loop of the target's program carries an array of that shape."""
    if reading.compiled is None:
        return False
    text = f"[{','.join(map(str, shape))}]"
    graph = reading.compiled.graph
    kept = [v for loop in graph.loops for v in loop.carried]
    return any(text in each.text for each in kept)


def _is_multiplied(flow: Flow, loop: Step, text: str) -> bool:
    """Whether the loop body multiplies matrices of that type, which nothing fuses into."""
    return any(
        user.primitive in _PRODUCTS
        for body in loop.bodies
        for number in body.inputs
        if flow.value(number).text == text
        for user in flow.used_by(number)
    )
