"""Virtual documents that a tracer writes; source is also verified, and cached by question.

A function that could not be verified has no text, only a reason.
"""

from __future__ import annotations

import base64

from jaxsight.features.findings import failures
from jaxsight.features.model import Linked, VirtualText
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.wire.messages import replies
from jaxsight.wire.messages.replies import Cancelled, Failed
from jaxsight.wire.messages.requests import TransformedSource
from jaxsight.workers.output import real_places


class NotSourcerized(LookupError):
    """There is no source; the message says why.

    `different` says that source was written, but its program is different.
    """

    def __init__(self, reason: str, *, different: bool = False) -> None:
        super().__init__(reason)
        self.different = different


def label(function: str, transform: str) -> str:
    """Return the name of a function or of its transformation: `f`, `grad(f)`."""
    return f"{transform}({function})" if transform else function


async def source(engine: Engine, view: View, options: TransformedSource) -> VirtualText:
    """Return the source of the function that `view` traced, valid as long as its answer.

    Raises:
        NotSourcerized: it cannot be written or verified.
    """
    answer = view.answer
    key = (answer.question.key, options)
    written = engine.memory.sources.get(key)
    if written is None or written[0] is not answer:
        project = engine.projects.of(answer.question.path)
        reply = await tracer_requests.sourcerize(project, answer.question, options)
        match reply:
            case replies.Shown(files=files) if not answer.agrees_with(files):
                raise NotSourcerized("a file that it imports has changed")
            case replies.Shown():
                written = (answer, reply)
                engine.memory.sources.put(key, written)
            case Failed() if reply.failure.stage == "sourcerize":
                words = real_places(reply.failure.message, engine.projects.locate)
                different = reply.failure.type.endswith(".NotTheSame")
                raise NotSourcerized(words, different=different)
            case Cancelled():
                raise NotSourcerized("interrupted")
            case _:  # a transformation fails, or a function that could be traced before
                name, question = label(view.subject.name, options.transform), answer.question
                failed = View(Answer(question, reply), view.module, question, view.subject)
                (finding,) = failures.findings(failed)
                rest = "".join(f"\n{line}" for line in finding.lines[1:])
                raise NotSourcerized(
                    f"tracing {name} failed: {finding.message} ({finding.code}){rest}"
                )
    title = f"{label(view.subject.name, options.transform)}.{options.style}.py"
    return document(view, title, written[1])


def document(view: View, title: str, shown: replies.Shown) -> VirtualText:
    """Return a tracer's text with its links moved into the module."""
    view.add_texts(shown.reused)
    return VirtualText(
        title,
        view.words(shown.text),
        tuple(
            Linked(link.line, link.path, view.range_of(link.span) if link.span else None)
            for link in shown.links
        ),
        view.stale,
        shown.equations,
        base64.b64decode(shown.companion),
        view.caveats,
        shown.ran,
    )
