"""JX417: an expression that overflows, underflows or cancels has a stable equivalent."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx417_unstable_form.forms import FORMS, Unstable
from jaxsight.rules.jx417_unstable_form.look import LIMITS, Look, words_of
from jaxsight.rules.patterns.programs import ProgramPatterns
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.rules.program.bounds import KnownValues
from jaxsight.rules.program.guards import has_rule, is_in_branch, is_written
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted

RULE = Rule(
    "JX417",
    "unstable-form",
    "Numerically unstable form of a function that JAX has a stable one of.",
    severity="warning",
    without_inputs=True,
)

_WRITTEN: dict[str, tuple[tuple[str, ...], tuple[type[ast.operator], ...]]] = {
    "log": (("log", "log2", "log10"), ()),
    "log2": (("log2",), ()),
    "log1p": (("log1p",), ()),
    "sub": (("subtract", "sub"), (ast.Sub,)),
    "add": (("add",), (ast.Add, ast.Sub)),
    "div": (("divide", "true_divide", "div"), (ast.Div,)),
}
"""By primitive that completes a form the functions and operators that users write it with."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's own logarithms, differences and quotients that have a stable equivalent."""
    flow, known = view.flow, KnownValues(view.flow)
    patterns = ProgramPatterns(view, words_of(known))
    seen: dict[object, tuple[Unstable, Look]] = {}
    for step in flow.forward_steps(*_WRITTEN):
        if step.span in seen or not is_written(view.quote(step.path), *_WRITTEN[step.primitive]):
            continue
        if has_rule(view, step) or is_in_branch(flow, step):
            continue
        looks = (
            (form, Look(view, known, patterns, found))
            for form in FORMS
            if flow.value(step.results[0]).dtype in LIMITS
            if (found := patterns.at(step, form.pattern)) is not None
        )
        for form, look in looks:
            if form.trouble.may_occur(look):
                seen[step.span] = form, look
                break
    covered = {
        step.path for form, look in seen.values() if form.covers for step in look.found.steps[1:]
    }
    for form, look in seen.values():
        if look.step.path in covered:
            continue
        trouble = form.trouble
        message, note = trouble.message, trouble.note
        if trouble.zero and not look.overflows:
            message = trouble.under
            note = "in {float}, `exp(x)` is 0 for `x` below {zero:.1f}, "
            note += f"so {trouble.zero} may be 0"
        weights = "`logsumexp` takes weights as `b=`"
        notes = (note, weights if form.weights and look.is_weighted() else "")
        help = form.instead if "`" in form.instead else f"use `{form.instead}`"
        yield Violation(
            look.filled(message),
            look.step.path,
            help=look.filled(help) + trouble.more(look),
            notes=tuple(look.filled(each) for each in notes if each),
            severity=form.severity,
        )


# The fix: write the stable function in place of one clear expression.


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the stable form of the expression that the finding is about."""
    patterns = SyntaxPatterns(context, capital="exp(_)")
    for node in context.nodes:
        if not isinstance(node, ast.expr) or context.range(node) != context.finding.range:
            return
        for form in FORMS:
            found = patterns.at(node, form.pattern)
            if found is None:
                continue
            if "`" not in form.instead:
                axes = str(found.get("axes", "")).replace(", keepdims=True", "")
                found = {"base": "", **found, "axis": axes or ", axis=None"}
                text = patterns.filled(form.instead, found)
                imported = context.jax_import() if text.lstrip("-").startswith("jax.") else ()
                edits = (context.replace(node, text), *imported)
                yield Candidate(f"Write {quoted(text)}", edits, same=not form.differs)
            return


REMEDY = Remedy.correcting("the stable function in place of the expression", candidates)
