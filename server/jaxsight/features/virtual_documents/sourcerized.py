"""Virtual documents that a tracer writes; source is also verified, and cached by question.

A function that could not be verified has no text, only a reason.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath

from jaxsight.features.findings import failures
from jaxsight.features.model import Linked, VirtualText
from jaxsight.files import reading
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces import tracer_requests
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.source.text import Position, Range
from jaxsight.wire.messages import replies
from jaxsight.wire.messages.replies import Cancelled, Failed
from jaxsight.wire.messages.requests import TransformedSource
from jaxsight.workers.output import real_places
from jaxsight.workers.program_files import NotRead, NotTimely, program_text


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


# The JAX source of a program file that an editor shows: StableHLO, HLO.


ENDINGS = frozenset({".mlir", ".mlirbc", ".stablehlo", ".hlo", ".jaxexport"})
"""The endings of files that editors open as programs."""

_LARGEST = 64 << 20
"""The maximum size of a file in bytes, as in the terminal."""


def is_program_file(path: str) -> bool:
    return PurePath(path).suffix in ENDINGS


async def source_of_file(
    engine: Engine, path: str, options: TransformedSource, text: str | None
) -> VirtualText:
    """Return the source of a program, within the time limit of a compile.

    Args:
        text: the file's text as an editor has it; by default, the file is read.

    Raises:
        NotSourcerized: it cannot be read, written or verified.
    """
    project = engine.projects.of(path)
    if project.interpreter is None or project.held_back:
        raise NotSourcerized(project.problem or project.held_back)
    try:
        if text is None:
            content = await asyncio.to_thread(reading.data, path, _LARGEST)
        else:
            content = text.encode()
        request = {"to": "python", "options": asdict(options.plain), "linked": True}
        limit = project.settings.timeouts.compile
        shown = await program_text(project.interpreter.path, content, request, limit)
    except reading.UnreadableError as error:
        raise NotSourcerized(str(error)) from error
    except NotTimely as error:
        raise NotSourcerized(f"{error}; help: raise `timeouts.compile`") from error
    except NotRead as error:
        raise NotSourcerized(str(error), different=error.different) from error
    title = f"{PurePath(path).stem}.{options.style}.py"
    ran = tuple(proof for proof in shown.proofs if proof not in ("jaxpr", "stablehlo"))
    links = _links(shown.links, content.decode("utf-8", "replace")) if shown.links else ()
    return VirtualText(title, shown.text, links, equations=shown.equations, ran=ran)


def _links(pairs: Sequence[tuple[int, int]], text: str) -> tuple[Linked, ...]:
    """Return links from lines of a source to those of the program, without their indentation."""
    lines = text.split("\n")
    links = []
    for number, line in pairs:
        code = lines[line].rstrip()
        indent = len(code) - len(code.lstrip())
        where = Range(Position(line, indent), Position(line, len(code)))
        links.append(Linked(number, "", where))
    return tuple(links)
