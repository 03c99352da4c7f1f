"""What hints say at the head of a function, as information: for clients that show nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxsight.features.hover.text import signature
from jaxsight.features.inlay_hints.functions import SIGN, totals
from jaxsight.features.inlay_hints.kind import ShownDocument, head
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.text import Position, Range
from jaxsight.text.inert import one_line
from jaxsight.text.layout import cut
from jaxsight.text.terminal import instruction
from jaxsight.trust.decisions import COMMAND, command
from jaxsight.wire.messages.replies import Traced

CODE = "figures"
UNTRUSTED = "untrusted"
"""Neither is a rule, so they cannot be selected or ignored."""

_LONGEST = 100
"""Characters of a message, as of those of rules."""


def findings(engine: Engine, document: Document, views: Sequence[View]) -> Iterator[Finding]:
    """Yield the figures of each traced function, with its types as a note.

    Until its kernels are known, the message has the types. Where nothing may run, there is a
    warning in files that name JAX: such a client has nothing else to show that.
    """
    project = engine.projects.of(document.path)
    if project.held_back:
        if "jax" in document.text:
            start = Range(Position(0, 0), Position(0, 0))
            message = "this file's code does not run, because its folder is not trusted"
            remedy = instruction(command(project.folder), f"run the command `{COMMAND}`")
            yield Finding(UNTRUSTED, Severity.WARNING, start, message, help=remedy)
        return
    settings = project.settings.inlay_hints
    shown = ShownDocument(engine, document, views, replace(settings, width=_LONGEST), None)
    by_place = {
        hint.range: one_line(hint.label).removeprefix(SIGN).strip() for hint in totals(shown)
    }
    for view in views:
        if isinstance(view.answer.reply, Traced):
            text = signature(view.subject.name, view.shown(view.answer.reply))
            types = one_line(" ".join(text.split())).replace("( ", "(").replace(", )", ")")
            message = by_place.get(head(view)) or cut(types, _LONGEST)
            notes = (types,) if message != types else ()
            place, is_stale = view.name_range, bool(view.stale)
            yield Finding(CODE, Severity.INFORMATION, place, message, stale=is_stale, notes=notes)
