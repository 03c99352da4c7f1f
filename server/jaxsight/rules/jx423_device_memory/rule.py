"""JX423: a program needs more memory than a device of the target has."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import most_temporaries
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import size
from jaxsight.wire.messages.compiling import Incomplete

RULE = Rule(__name__, "The program needs more memory than the device has.", severity="warning")


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield one finding if arguments, results and temporaries exceed the chip's memory.

    Raises:
        Incomplete: the compile ended before the sizes were known.
    """
    if view.target is None or view.target.chip is None:
        return
    capacity = view.target.chip.memory
    graph, memory = view.on_target.graph, view.on_target.memory
    more = graph.scratch_at_most or 0
    if graph.fixed_bytes + most_temporaries(graph) <= capacity:
        return
    if not view.on_target.is_complete:
        raise Incomplete
    temporaries = memory.temporaries
    if temporaries < 0 or memory.arguments < 0 or memory.outputs < 0:
        return
    results = memory.outputs - max(memory.aliased, 0)
    needed = memory.arguments + results + temporaries
    tuned = (f"and up to {size(more)} if autotuning on the device chooses cuBLAS",) if more else ()
    if needed + more <= capacity:
        return
    up_to = "up to " if more else ""
    several = view.on_target.devices > 1
    each = " on each device" if several else ""
    yield Violation(
        f"needs {up_to}{size(needed + more)}{each}, {view.target.chip.title} has {size(capacity)}",
        help="divide large arrays over a mesh axis, donate inputs, or chunk the work"
        if several
        else "divide large arrays over several devices, donate inputs, or chunk the work",
        notes=(
            (
                f"arguments {size(memory.arguments)}, results that are not in donated buffers "
                f"{size(results)}, temporaries {size(temporaries)}"
            ),
            *tuned,
        ),
    )
