"""JX471: JAX or another library warned, while the function was traced, that a use is deprecated.

Python hides these warnings, except those of the file that was started. Which release removes what
is used is known where the warning names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.rules.failure_text import divided
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
            span=warned.span,
        )
