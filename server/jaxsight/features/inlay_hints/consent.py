"""A mark after the signature of a function that waits for the user's consent to run or compile."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head_of
from jaxsight.features.model import Hint
from jaxsight.trust.decisions import shown_path


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield a mark for each function that is neither run nor sent to a host until then."""
    engine, document = shown.engine, shown.document
    project = engine.projects.of(document.path)
    label, why = "not trusted", project.held_back
    if not why and shown.wanted.kernels:
        target = engine.choices.target(document.path)
        if target.host:
            label = f"{shown_path(target.short)} waits for approval"
            why = project.not_sent(target.host)
    if not why:
        return
    for subject in engine.documents.subjects(document):
        if subject.examples.sets:
            at = head_of(document.module, subject.name_range, subject.range)
            yield Hint(at, label, why)


KIND = HintKind(("shapes", "kernels", "barriers", "collectives"), hints)
