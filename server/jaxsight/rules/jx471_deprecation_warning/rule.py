"""JX471: JAX or another library warned, while the function was traced, that a use is deprecated.

Python hides these warnings, except those of the file that was started. Which release removes what
is used is known where the warning names it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import Enum

from jaxsight.rules.failure_text import divided
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import MOST
from jaxsight.text.inert import words

RULE = Rule(
    __name__,
    "Library warned that a use is deprecated.",
    severity="information",
    unless="JX470",
    without_inputs=True,
)

_CATEGORIES = frozenset({"DeprecationWarning", "PendingDeprecationWarning", "FutureWarning"})
_ADVICE = re.compile(
    r"(?:^|[.;:,]\s+)(?:please\s+)?((?:use|switch|replace|call|pass|specify)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
"""The part of a warning that says what to do; the rest says what is deprecated."""


class Deprecated(Enum):
    """Deprecated uses with a fix, each with the words of its warning."""

    MESH_CONTEXT = "`with mesh:` context manager"
    VARIABLE_VALUE = "'.value' "


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield a finding for each warning at a place of the user's code."""
    for warned in view.warnings:
        if warned.category not in _CATEGORIES or warned.span is None:
            continue
        text = " ".join(warned.message.split())
        advice = _ADVICE.search(text)
        is_apart = advice is not None and advice.start() > 0
        said = text[: advice.start()] if advice and is_apart else text
        message, notes = divided(said, MOST - len("“”"))
        yield Violation(
            words(message),
            help=words(advice[1].rstrip(".")) if advice and is_apart else "",
            notes=tuple(map(words, notes)),
            data=next((known for known in Deprecated if text.startswith(known.value)), None),
            span=warned.span,
        )


# The fix: write what replaces the deprecated use, where that is clear from the syntax.


@RULE.fixes("`jax.set_mesh(mesh)`, `variable[...]`")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `with jax.set_mesh(mesh):` for `with mesh:`, and `variable[...]` for `.value`."""
    line = context.finding.range.start.line
    match context.finding.data:
        case Deprecated.MESH_CONTEXT:
            for node in ast.walk(context.tree):
                if isinstance(node, ast.With) and context.range(node).start.line == line:
                    meshes = [item.context_expr for item in node.items]
                    names = [mesh for mesh in meshes if not isinstance(mesh, ast.Call)]
                    if len(names) == 1 and "jax" in context.imports:
                        text = f"{context.imports['jax']}.set_mesh({context.text(names[0])})"
                        yield Candidate(
                            "Set the mesh by `jax.set_mesh`", (context.replace(names[0], text),)
                        )
        case Deprecated.VARIABLE_VALUE:
            edits = [
                context.replace(node, f"{context.operand(node.value)}[...]")
                for node in ast.walk(context.tree)
                if isinstance(node, ast.Attribute)
                and node.attr == "value"
                and context.range(node).start.line == line
            ]
            if edits:
                yield Candidate("Use `variable[...]`", tuple(edits))
