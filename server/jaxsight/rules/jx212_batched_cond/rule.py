"""JX212: a `cond` whose predicate is batched by `vmap` runs all its branches and selects."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import first_work
from jaxsight.rules.rule import Rule, Violation
from jaxsight.wire.chunks import Span
from jaxsight.wire.program import Step

RULE = Rule(__name__, "A `cond` under `vmap` runs all its branches.", severity="warning")
_COND = re.compile(r"(?:^|[\w.]*\.)(?P<name>cond|switch)\(")


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Find the user's conditionals that became selections, with heavy work in a branch.

    Elementwise branches are fused into the kernel that selects, and cost next to nothing.
    """
    flow = view.flow
    selects: dict[Span, list[Step]] = defaultdict(list)
    kept_spans: set[Span] = set()
    for step in flow.steps.values():
        if step.span is None:
            continue
        if step.primitive == "cond":
            kept_spans.add(step.span)
        elif step.primitive == "select_n" and _COND.match(view.quote(step.path)):
            selects[step.span].append(step)
    for span, steps in selects.items():
        chosen = [step for step in steps if not _is_guard(flow, step)]
        if span in kept_spans or not chosen or not flow.value(chosen[0].operands[0]).shape:
            continue
        work = _work(flow, chosen, span)
        if work is None:
            continue
        select = chosen[0]
        count = len(select.operands) - 1
        branches = "both branches" if count == 2 else f"all {count} branches"
        match = _COND.match(view.quote(select.path))
        assert match is not None
        yield Violation(
            f"`{match['name']}` under `vmap` runs {branches} for every element",
            select.path,
            help="take a predicate that is the same for all elements out of the batch, or group "
            "the elements by branch",
            notes=(
                "the results of the branches are selected element by element",
                f"a branch contains `{work.primitive}`",
            ),
            related=((work.path, "in a branch"),),
        )


def _is_guard(flow: Flow, select: Step) -> bool:
    """Whether JAX made the selection to keep derivatives out of the branch that is not taken.

    Such a selection is between an operand and `stop_gradient` of it (jax-ml/jax#1052).
    """
    cases = {flow.of(case): flow.producer(case) for case in select.operands[1:]}
    stopped = (
        maker
        for maker in cases.values()
        if maker is not None and maker.primitive == "stop_gradient"
    )
    return any(flow.of(maker.operands[0]) in cases for maker in stopped)


def _work(flow: Flow, selects: Sequence[Step], span: Span) -> Step | None:
    """Return a heavy equation of a branch; `None` if there is none."""
    cases = [case for select in selects for case in select.operands[1:]]
    return first_work(flow, cases, lambda step: step.primitive != "select_n" or step.span != span)
