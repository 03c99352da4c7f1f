"""Virtual documents: the texts of a tracer, with links into the module."""

from __future__ import annotations

import base64

from jaxsight.features.model import Linked, VirtualText
from jaxsight.queries.traces.located_answer import View
from jaxsight.wire.messages import replies


def document(view: View, title: str, shown: replies.Shown) -> VirtualText:
    """Return a tracer's text with its links moved into the module."""
    view.add_texts(shown.reused)
    links = tuple(
        Linked(link.line, link.path, view.range_of(link.span) if link.span else None)
        for link in shown.links
    )
    companion = base64.b64decode(shown.companion)
    return VirtualText(
        title,
        view.words(shown.text),
        links,
        view.stale,
        shown.equations,
        companion,
        view.caveats,
        shown.ran,
    )
