"""JX204: a large array goes through a loop unchanged though it is cheap to make: inside the body it would take no memory."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import ELEMENTWISE, SHAPED, Flow, Reading, captured, is_known
from jaxsight.rules.rule import Rule
from jaxsight.tracer.program import Step
from jaxsight.units import MIB, size

RULE = Rule(
    "JX204",
    "loop-invariant-temporary",
    "A large array that is cheap to make is kept through a loop.",
    severity="warning",
)
LARGE = MIB // 2
_LOOPS = ("scan", "fori_loop", "while_loop", "map")
_CHEAP = ELEMENTWISE | SHAPED | {"iota", "concatenate"}
_PRODUCTS = ("dot_general", "conv_general_dilated")


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each array that a loop of the user's captures, of half a mebibyte or more, made from counters and small things alone."""
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
                f"{reading.quoted(maker.path)} ({value.text}, {size(value.bytes)}) is kept in memory through all of the loop "
                f"{reading.quoted(step.path)}, though it is made from counters and small values: computed inside the body it "
                "fuses with what uses it.",
                maker.path,
                related=((step.path, "the loop"),),
            )


def _kept(reading: Reading, shape: tuple[int, ...]) -> bool:
    """Whether the target's program keeps an array of that shape, where that is known."""
    if reading.compiled is None:
        return False
    text = f"[{','.join(map(str, shape))}]"
    graph = reading.compiled.graph
    kept = [v for loop in graph.loops for v in loop.carried]
    return any(text in each.text for each in kept)


def _is_multiplied(flow: Flow, loop: Step, text: str) -> bool:
    """Whether the loop's bodies multiply matrices with an array of that type: nothing fuses into such a product."""
    return any(
        user.primitive in _PRODUCTS
        for body in loop.bodies
        for number in body.inputs
        if flow.value(number).text == text
        for user in flow.used_by(number)
    )
