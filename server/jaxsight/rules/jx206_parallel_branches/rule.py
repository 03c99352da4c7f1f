"""JX206: independent copies of the same heavy operation may all hold temporaries at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import MIB, size

RULE = Rule(
    __name__,
    "Independent copies of heavy work keep their temporaries alive at once.",
    severity="information",
)
LEAST = 3
LARGE = MIB // 2
"""Copies, and bytes of the result of each, at least. A choice: two products are independent in most
layers; higher misses loops over few channels."""
_COMPARED, _ABOVE = 4, 2000
"""Copies that are compared, and equations above each, a choice: copies of one expression are made
alike, and each walk through a large program takes long."""
_HEAVY = {
    "fft": "FFTs",
    "dot_general": "matrix products",
    "conv_general_dilated": "convolutions",
    "sort": "sorts",
}
"""Heavy primitives, and what several of them are called."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find three or more equal heavy equations of one expression that are independent.

    Their results together fit in the temporary memory that the target allocates.
    """
    flow = view.flow
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for path, step in flow.steps.items():
        if (
            step.primitive in _HEAVY
            and step.span is not None
            and not step.backward
            and "/" not in path.replace("/body/", ".")
        ):
            kind = step.primitive, step.span, step.parameters, flow.value(step.results[0]).text
            groups[kind].append(path)
    for paths in sorted(
        groups.values(),
        key=lambda group: -sum(flow.value(flow.steps[path].results[0]).bytes for path in group),
    ):
        each = flow.value(flow.steps[paths[0]].results[0])
        if len(paths) < LEAST or each.bytes < LARGE:
            continue
        temporaries = view.on_target.temporaries  # known after a complete compile alone
        if temporaries < len(paths) * each.bytes:
            continue
        if not _independent(flow, paths) or not _in_turn(flow, paths):
            continue
        target = view.target.short if view.target is not None else "the target"
        copies = f"{len(paths)} independent {_HEAVY[flow.steps[paths[0]].primitive]}"
        yield Violation(
            f"{copies} keep {size(temporaries)} of temporaries alive at once",
            paths[0],
            help="serialize them with `jax.lax.fori_loop`, or with "
            "`jax.lax.optimization_barrier` between them",
            notes=(
                f"each has a result of {size(each.bytes)}",
                f"the function allocates {size(temporaries)} of temporary memory on {target}",
            ),
        )
        return  # the others are parts of the same branches


def _independent(flow: Flow, paths: list[str]) -> bool:
    """Whether none of the first few equations depends on another of them."""
    few = paths[:_COMPARED]
    return not any(
        step.path in few and step.path != path
        for path in few
        for number in flow.steps[path].operands
        for step in flow.backwards(number, lambda step: True, most=_ABOVE)
    )


def _in_turn(flow: Flow, paths: list[str]) -> bool:
    """Whether each branch meets the others in at most one place, so that they can be serialized.

    A result that is needed in several places is kept in any order.
    """
    branches: dict[int, frozenset[str]] = {}
    started = set(paths)
    meetings: Counter[str] = Counter()
    for step in flow.steps.values():
        met = {branches.get(flow.of(number), frozenset()) for number in step.operands}
        joined = frozenset[str]().union(*met)
        if step.path in started:
            joined = frozenset({step.path})
        elif len(met - {frozenset()}) > 1:
            meetings.update(path for branch in met if len(branch) == 1 for path in branch)
        branches.update(dict.fromkeys(step.results, joined))
    return all(count <= 1 for count in meetings.values())
