"""A mark after the signature of a function whose newest answer has caveats.

Beside figures the mark is a part of them: it never stands in the place of kernels that are still
being compiled.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features import caveats, inputs
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.model import Hint
from jaxsight.queries.traces.located_answer import View


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the mark of each function whose kernels are not shown after its signature."""
    programs, has_kernels = shown.engine.programs, shown.wanted.kernels
    newest: dict[str, View] = {}
    functions = [view for view in shown.views if not view.subject.is_program]
    for view in inputs.without_repeats(functions):
        newest.setdefault(view.subject.id, view)
    counted = {
        view.subject.id
        for view in shown.views
        if has_kernels and view.is_traced and programs.refusal(view) is None
    }
    for name, view in newest.items():
        hint = caveats.hint(view, head(view))
        if hint is not None and name not in counted:
            yield hint


KIND = HintKind(("shapes", "kernels"), hints)
