"""Virtual documents of source: written by a tracer, verified, and cached by question.

A function that could not be verified has no text, only a reason.
"""

from __future__ import annotations

from jaxsight.features.findings import failures
from jaxsight.features.model import VirtualText
from jaxsight.features.virtual_documents.text import document
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.wire.messages import replies
from jaxsight.wire.messages.replies import Cancelled, Failed
from jaxsight.wire.messages.requests import SourceOptions
from jaxsight.workers.output import real_places
from jaxsight.workers.results import Died


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


async def source(engine: Engine, view: View, options: SourceOptions) -> VirtualText:
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
            case _:
                raise NotSourcerized(_failed(view, options, reply))
    title = f"{label(view.subject.name, options.transform)}.{options.style}.py"
    return document(view, title, written[1])


def _failed(view: View, options: SourceOptions, reply: Failed | Died) -> str:
    """Return the error of a transformation, or of a function that could be traced before."""
    name = label(view.subject.name, options.transform)
    question = view.answer.question
    failed = View(Answer(question, reply), view.module, question, view.subject)
    (finding,) = failures.findings(failed)
    rest = "".join(f"\n{line}" for line in finding.lines[1:])
    return f"tracing {name} failed: {finding.message} ({finding.code}){rest}"
