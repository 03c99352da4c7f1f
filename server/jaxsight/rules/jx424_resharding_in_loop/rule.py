"""JX424: each iteration of a loop reshards the same array."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.meshes.divided import inserted_reshards, shape_of
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.loops import loop_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import count, size
from jaxsight.wire.program import Step

RULE = Rule(__name__, "Each iteration of a loop reshards the same array.", severity="warning")


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the collectives in loops that only reshard an array which the loop does not change.

    Slices of an array, such as the weights of one of the layers that `scan` runs over, differ in
    each iteration.
    """
    reported: set[str] = set()
    for kernel, collective in inserted_reshards(view.on_target):
        if not collective.axes or kernel.runs < 2:
            continue
        for path in kernel.equations or kernel.feeds:
            known, loop = view.shardings.get(path), view.flow.parent.get(path)
            if known is None or loop is None or path in reported:
                continue
            if known.operands or collective.kind != "all-gather":
                resharded = {
                    shape_of(operand.type)
                    for operand in known.operands
                    if {axis for axes in operand.spec for axis in axes}.issuperset(collective.axes)
                }
            else:  # the shardings of the operands are unknown
                resharded = {shape_of(value.text) for value in kernel.outputs}
            if not _is_unchanged(view.flow, path, loop, resharded):
                continue
            reported.add(path)
            yield Violation(
                f"each iteration reshards the same array: {collective.kind} of "
                f"{size(collective.bytes)} × {kernel.runs}",
                path,
                help="reshard it before the loop with `jax.lax.with_sharding_constraint`",
                notes=(
                    f"over {', '.join(collective.axes)}, on each device",
                    f"the loop is {view.quoted(loop.path)}, {count(kernel.runs, 'iteration')}",
                ),
                related=((loop.path, "the loop"),),
            )
            break


def _is_unchanged(flow: Flow, path: str, loop: Step, shapes: set[tuple[int, ...]]) -> bool:
    """Return whether all operands of some shapes are the same in each iteration."""
    read = loop_of(flow, loop)
    unchanged = read.captured if read is not None else {}
    step = flow.steps.get(path)
    operands = step.operands if step is not None else ()
    values = [each for each in operands if flow.value(each).shape in shapes]
    return bool(values) and all(flow.stripped(each) in unchanged for each in values)
