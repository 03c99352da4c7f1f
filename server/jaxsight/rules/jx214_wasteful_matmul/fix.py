"""Fix JX214: scale by a diagonal, read a diagonal directly, or multiply in the other order."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.rules.text.expressions import parsed

_SCALE, _FACTORS = "Scale by the diagonal", "Multiply by the factors"
_DROP, _REORDER = "Drop the product with the identity matrix", "Multiply in the other order"
_ROWS = (
    ("eye(*n) @ a | a @ eye(*n)", "{a}", _DROP),
    ("diag(d) @ a", "{(d)}{rows} * {(a)}", _SCALE),
    ("a @ diag(d)", "{(a)} * {(d)}", _SCALE),
    ("kron(a, b) @ x", "({(a)} @ {(x)}.reshape({(a)}.shape[1], -1) @ {(b)}.T).ravel()", _FACTORS),
    ("outer(a, b) @ x", "{(a)} * ({(b)} @ {(x)})", _FACTORS),
    ("trace(a @ b)", "jnp.sum({(a)} * {b^T})", "Compute the trace alone"),
    (
        "diag(a @ b) | diagonal(a @ b)",
        "jnp.sum({(a)} * {b^T}, axis=1)",
        "Compute the diagonal alone",
    ),
    ("(a @ b) @ c", "{(a)} @ ({(b)} @ {(c)})", _REORDER),
    ("a @ (b @ c)", "({(a)} @ {(b)}) @ {(c)}", _REORDER),
)
"""What is written, what to write instead, and the title of that; `{rows}` turns a diagonal that
scales the rows of a matrix.
"""


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield other forms of the first expression that is one of the wasteful ones."""
    patterns = SyntaxPatterns(context, looks_up=True)
    for node in context.nodes if context.jnp else ():
        is_proposed = False
        for pattern, template, title in _ROWS if isinstance(node, ast.expr) else ():
            assert isinstance(node, ast.expr)
            found = patterns.at(node, pattern)
            if found is None or found.get("axes"):
                continue
            is_proposed = True
            rows = "" if patterns.rank(found.get("a", "")) == 1 else "[:, None]"
            text = patterns.filled(template, {**found, "rows": rows})
            if not isinstance(parsed(text), ast.Call):
                text = context.bracketed(node, text)
            yield Candidate(title, (context.replace(node, text),))
        if is_proposed:
            return


REMEDY = Remedy("the same with fewer operations", candidates, trades=frozenset({figures.LAUNCHED}))
