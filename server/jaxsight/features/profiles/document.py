"""The open profile as a document."""

from __future__ import annotations

from jaxsight.features.model import VirtualText
from jaxsight.features.profiles.report import as_text, report
from jaxsight.queries.engine import Engine

FUNCTION = "report"
"""The place of a function's name in the document's URI, as a profile is of none."""


def document(engine: Engine, path: str) -> VirtualText:
    """Return the report of the profile that was opened.

    Raises:
        LookupError: another one is open, or none.
    """
    opened = engine.profiles.opened
    if opened is None or engine.profiles.path != path:
        raise LookupError(f"the profile {path} is not open; open it again")
    return VirtualText(f"{FUNCTION}.profile", as_text(report(opened.profile, opened.sources)))
