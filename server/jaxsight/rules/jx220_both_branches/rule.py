"""JX220: `jnp.where` with a scalar predicate computes two heavy results, and drops one of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import first_work
from jaxsight.rules.rule import ALL, Rule, Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.program import Step

RULE = Rule(
    __name__,
    "A `where` with a scalar predicate computes both of its heavy operands.",
    severity="warning",
)

_MOVES = frozenset(
    {"broadcast_in_dim", "reshape", "squeeze", "expand_dims", "convert_element_type"}
)
_MOST = 300
"""Equations of a case that are looked at: work beyond them is missed, and more take long."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's selections by one number, whose cases contain work for nothing else.

    Selections by the same predicate belong together: a tree of arrays has one for each leaf.
    """
    flow = view.flow
    groups: dict[int, list[Step]] = defaultdict(list)
    for step in flow.steps.values():
        if step.primitive != "select_n" or len(step.operands) != 3 or step.backward:
            continue
        predicate = flow.before(step.operands[0], _MOVES)
        value = flow.values[predicate]
        is_one = value.elements == 1 and not value.is_constant
        if is_one and view.wrote(step.path, "where", "select"):
            groups[predicate].append(step)
    for selects in groups.values():
        true, false = (
            first_work(
                flow,
                [select.operands[case] for select in selects],
                _alone(flow, {select.path for select in selects}, case),
                _MOST,
            )
            for case in (2, 1)
        )
        if true is None or false is None:
            continue
        select = selects[0]
        texts = view.quote(true.path), view.quote(false.path)
        first, second = (quoted(text, most=24) for text in texts)
        yield Violation(
            f"{first} and {second} are both computed, but only one is used",
            select.path,
            help="run only one of them: `jax.lax.cond(pred, true_fun, false_fun, *operands)`",
            notes=("the predicate is a scalar, so all of one result is dropped",),
            data=texts,
            related=tuple((step.path, "computed for one branch alone") for step in (true, false)),
        )


def _alone(flow: Flow, selects: set[str], case: int) -> Callable[[Step], bool]:
    """Return whether an equation is there for one case of some selections, and nothing else."""
    known: dict[str, bool] = {}

    def is_alone(step: Step) -> bool:
        """Whether all that uses the results leads to the case."""
        if step.path not in known:
            known[step.path] = False  # ends recursion
            if len(known) > 2 * _MOST:
                return False
            known[step.path] = all(map(leads_to_case, step.results))
        return known[step.path]

    def leads_to_case(number: int) -> bool:
        if flow.of(number) in flow.returned:
            return False
        for user in flow.used_by(number):
            if user.path in selects:
                operands = list(map(flow.of, user.operands))
                if operands.count(flow.of(number)) > 1 or operands[case] != flow.of(number):
                    return False
            elif not user.backward and not is_alone(user):
                return False
        return True

    return is_alone


# The fix: compute the branches in a `cond`.


# One branch runs in place of two; the figures count both.
@RULE.fixes("`jax.lax.cond` in place of the selection", trades=ALL)
def candidates(context: FixContext, expressions: tuple[str, str]) -> Iterator[Candidate]:
    """Yield `cond(pred, lambda: a, lambda: b)` for `where(pred, a, b)` that contains the work.

    Args:
        context: the finding.
        expressions: what is written for a true predicate and for a false one, on one line.
    """
    patterns = SyntaxPatterns(context)
    for call in context.find(ast.Call):
        found = patterns.at(call, "where(p, a, b) | select(p, a, b)")
        if found is None:
            continue
        cases = [" ".join(patterns.filled(case, found).split()) for case in ("{a}", "{b}")]
        if all(map(context.is_pure, call.args)) and all(
            expression and expression in case
            for expression, case in zip(expressions, cases, strict=True)
        ):
            text = patterns.filled("jax.lax.cond({p}, lambda: {a}, lambda: {b})", found)
            yield Candidate(
                "Compute one of the branches with `cond`",
                (*context.jax_import(), context.replace(call, text)),
            )
        return
