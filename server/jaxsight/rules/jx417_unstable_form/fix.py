"""JX417: write the stable function in place of one clear expression."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx417_unstable_form.forms import FORMS
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.rules.wording import quoted


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
