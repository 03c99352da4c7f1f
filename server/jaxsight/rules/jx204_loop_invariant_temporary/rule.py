"""JX204: a large loop-invariant array is kept in memory, though it is cheap to compute.

Computed inside the loop body it would take no memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.loops import LoopParts, loop_of
from jaxsight.rules.program.steps import is_known
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.wire.primitives import FUSED
from jaxsight.wire.program import Step
from jaxsight_source.units import MIB, size

RULE = Rule(
    "JX204",
    "loop-invariant-temporary",
    "Cheap loop-invariant array kept in memory for a whole loop.",
    severity="warning",
)
LARGE = MIB // 2
"""Bytes from which an array is reported: reading 512 KiB takes 0.2 µs at 3 TB/s in each iteration.
A choice: lower reports what no device runs short of, higher misses masks of a few hundred rows."""
_SMALLER = 64
"""How many times smaller what it is computed from is: each iteration reads that instead."""
_LOOPS = ("scan", "fori_loop", "while_loop", "map")
_WHOLE = ("dot_general", "conv_general_dilated", "cond", "scan", "while")
"""What reads its operands from memory."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find arrays of 512 KiB or more that the user's loops capture and that are cheap to compute.

    Cheap is what elementwise operations compute from constants, counters and arrays of at most a
    64th of the size.
    """
    flow = view.flow
    kept = [carried for loop in view.on_target.graph.loops for carried in loop.carried]
    for step in flow.steps.values():
        loop = loop_of(flow, step) if view.wrote(step.path, *_LOOPS) else None
        if loop is None:
            continue
        for number in loop.captured.values():
            value = flow.value(number)
            maker = flow.made_by(number)
            if value.bytes < LARGE or maker is None:
                continue
            sources = flow.sources(number, FUSED)
            if sources is None or not all(
                is_known(flow.values[source]) or flow.values[source].bytes * _SMALLER <= value.bytes
                for source in sources
            ):
                continue
            shape = f"[{','.join(map(str, value.shape))}]"
            if not any(shape in carried.text for carried in kept):
                continue
            if _is_needed_whole(flow, loop, value.text):
                continue
            yield Violation(
                f"loop-invariant array ({size(value.bytes)}) is kept in memory for the whole loop",
                maker.path,
                help="compute it inside the loop body, where it fuses with the code that uses it",
                notes=(
                    f"{value.text} is computed from counters and small arrays alone",
                    f"the loop is {view.quoted(step.path)}",
                ),
                related=((step.path, "the loop"),),
            )


def _is_needed_whole(flow: Flow, loop: LoopParts, text: str) -> bool:
    """Whether the loop's bodies need an array of that type in memory.

    Nothing fuses into a product of matrices, nor into a loop or a conditional of the body's own.
    """

    def goes_on(user: Step) -> bool:
        """Whether a step fuses, and reads at most one array that is not known while compiling."""
        operands = {flow.of(operand) for operand in user.operands}
        unknown = [n for n in operands if flow.values[n].shape and not is_known(flow.values[n])]
        return user.primitive in FUSED and len(unknown) <= 1

    return any(
        user.primitive in _WHOLE
        for number in loop.captured
        if flow.value(number).text == text
        for _, user in flow.forwards(number, goes_on)
    )
