"""A mark after the signature of a function whose newest answer has caveats.

Beside figures the mark is a part of them: it never stands in the place of kernels that are still
being compiled.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features import caveats
from jaxsight.features.hover import called
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.model import Hint
from jaxsight.queries.traces.located_answer import View
from jaxsight.wire.messages.replies import Traced


def _hints(shown: ShownDocument) -> Iterator[Hint]:
    newest: dict[str, View] = {}
    for view in called.without_repeats(shown.views):
        newest.setdefault(view.subject.name, view)
    counted = {view.subject.name for view in shown.views if _has_figures(shown, view)}
    for name, view in newest.items():
        hint = caveats.hint(view, head(view))
        if hint is not None and name not in counted:
            yield hint


def _has_figures(shown: ShownDocument, view: View) -> bool:
    """Return whether a function's kernels are shown after its signature, now or soon."""
    engine = shown.engine
    return (
        shown.wanted.kernels
        and isinstance(view.answer.reply, Traced)
        and bool(engine.choices.targets(shown.document.path))
        and engine.programs.refusal(view) is None
    )


KIND = HintKind(("shapes", "kernels"), _hints)
