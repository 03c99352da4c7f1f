"""JX220: `jnp.where` with a scalar predicate computes two heavy results, and drops one of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class BothBranches:
    """A selection between results of work."""

    expressions: tuple[str, str]
    """What the user wrote for a true predicate and for a false one, each on one line."""


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
        is_one = value.elements == 1 and not value.is_known
        if is_one and view.wrote(step.path, "where", "select"):
            groups[predicate].append(step)
    for selects in groups.values():
        true, false = (
            first_work(
                flow,
                [select.operands[case] for select in selects],
                _Alone(flow, {select.path: select for select in selects}, case).is_alone,
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
            data=BothBranches(texts),
            related=tuple((step.path, "computed for one branch alone") for step in (true, false)),
        )


class _Alone:
    """Which equations are there for one case of some selections, and nothing else."""

    def __init__(self, flow: Flow, selects: dict[str, Step], case: int) -> None:
        self._flow = flow
        self._selects = selects
        self._case = case
        self._known: dict[str, bool] = {}

    def is_alone(self, step: Step) -> bool:
        """Whether all that uses the results leads to the case."""
        alone = self._known.get(step.path)
        if alone is None:
            self._known[step.path] = False  # ends recursion
            if len(self._known) > 2 * _MOST:
                return False
            alone = self._known[step.path] = all(map(self._leads_to_case, step.results))
        return alone

    def _leads_to_case(self, number: int) -> bool:
        number = self._flow.of(number)
        if number in self._flow.returned:
            return False
        for user in self._flow.used_by(number):
            if user.backward:
                continue
            select = self._selects.get(user.path)
            if select is not None:
                places = [
                    i for i, operand in enumerate(user.operands) if self._flow.of(operand) == number
                ]
                if places != [self._case]:
                    return False
            elif not self.is_alone(user):
                return False
        return True


# The fix: compute the branches in a `cond`.


# One branch runs in place of two; the figures count both.
@RULE.fixes("`jax.lax.cond` in place of the selection", trades=ALL)
def candidates(context: FixContext, data: BothBranches) -> Iterator[Candidate]:
    """Yield `cond(pred, lambda: a, lambda: b)` for `where(pred, a, b)` that contains the work."""
    patterns = SyntaxPatterns(context)
    for call in context.find(ast.Call):
        found = patterns.at(call, "where(p, a, b) | select(p, a, b)")
        if found is None:
            continue
        cases = [" ".join(patterns.filled(case, found).split()) for case in ("{a}", "{b}")]
        if all(map(context.is_pure, call.args)) and all(
            expression and expression in case
            for expression, case in zip(data.expressions, cases, strict=True)
        ):
            text = patterns.filled("jax.lax.cond({p}, lambda: {a}, lambda: {b})", found)
            yield Candidate(
                "Compute one of the branches with `cond`",
                (*context.jax_import(), context.replace(call, text)),
            )
        return
