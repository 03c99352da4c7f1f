"""The repros of a session: extracts them, reduces them, and shows them as virtual documents.

A repro is a file in the user's cache folder, so that it can be run and sent. The functions are
called in processes of their own; a repro that is cancelled leaves neither a process nor a file.
"""

from __future__ import annotations

import ast
import asyncio
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jaxsight.features.findings import failures
from jaxsight.features.model import Action, DocumentKind, Linked, VirtualText
from jaxsight.features.named_function import question_of
from jaxsight.files import private, reading
from jaxsight.lru import Recent
from jaxsight.queries.documents import Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.long_work import RunningTasks
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.text.parsing import parse
from jaxsight.wire.frames import encode
from jaxsight.wire.messages.replies import Failed
from jaxsight.wire.messages.requests import Trace
from jaxsight_repro.editor.processes import Processes
from jaxsight_repro.failures import RunFailure
from jaxsight_repro.folders import KEPT, new_folder
from jaxsight_repro.processes import (
    Event,
    NoResult,
    difference,
    emit_command,
    facts,
    progress,
    reduce_command,
)

EXTRACTED, REDUCED = "repro", "reduced"
"""The virtual documents of repros."""

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReproDocument:
    """A repro of a function: a file, which is also shown as the virtual document `kind`."""

    kind: DocumentKind
    function: str
    file: str
    summary: str
    """How it fails, or how much smaller it is, in one line."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A repro that was written."""

    file: Path
    text: str
    links: tuple[Linked, ...]
    check: str
    """What it does wrong, if it does not fail by itself."""


class Repros:
    """The repros of a session."""

    documents = (EXTRACTED, REDUCED)

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._written: Recent[tuple[str, str, str], _Written] = Recent(KEPT)
        self._running = RunningTasks()

    def actions(
        self, path: str, subject: Subject, range: Range, view: View | None
    ) -> Iterator[Action]:
        """Return the code actions for a range in a function with example inputs."""
        is_extracted = self._written.get((path, subject.name, EXTRACTED)) is not None
        return actions_of(self._engine, path, subject, range, view, is_extracted)

    async def extract(self, path: str, function: str, check: str, report: Report) -> ReproDocument:
        """Call a function with its example inputs, and write a repro of its failure.

        Args:
            path: an open document.
            function: the function's qualified name.
            check: what the function does wrong, if it does not fail by itself.
            report: called with each step.

        Raises:
            LookupError: there is no repro; the message says why.
        """
        with self._running.current():
            question = await question_of(self._engine, path, function)
            processes = Processes.of(self._engine.projects.of(path))
            module = self._engine.documents.find(path, function)[0].module
            folder = await asyncio.to_thread(new_folder, "repros")
            file = folder / f"{re.sub(r'[^A-Za-z0-9_]+', '_', function)}.py"
            is_written = False
            try:
                event, check = await _extracted(
                    processes, question.trace, module.text, file, check, report
                )
                text = await asyncio.to_thread(reading.text, file)
                is_written = True
            except (NoResult, OSError) as error:
                raise LookupError(f"no repro of {function}: {error}") from error
            finally:
                if not is_written:
                    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            links = links_of(text, processes.folder, path, module, function)
            self._written.put((path, function, EXTRACTED), _Written(file, text, links, check))
            self._written.pop((path, function, REDUCED))
            summary = RunFailure(**event["expected"]).headline
            return ReproDocument(EXTRACTED, function, str(file), summary)

    async def reduce(
        self, path: str, function: str, report: Report, interrupted: asyncio.Event
    ) -> ReproDocument:
        """Make the repro of a function smaller while it fails in the same way.

        Args:
            path: the file of the function.
            function: its qualified name.
            report: called with each step.
            interrupted: ends the reduction when it is set; the smallest program so far is kept.

        Raises:
            LookupError: it was not extracted, or cannot be reduced; the message says which.
        """
        with self._running.current():
            known = self._of(path, function, EXTRACTED)
            processes = Processes.of(self._engine.projects.of(path))
            out = known.file.with_name(f"{known.file.stem}_min.py")
            on_event: Callable[[Event], None] = lambda event: report(progress(event))
            try:
                command = reduce_command(processes.python, known.file, out, known.text, known.check)
                event = await processes.followed(command, on_event, interrupted)
                text = await asyncio.to_thread(reading.text, out)
            except (NoResult, OSError) as error:
                reason = "interrupted before anything was reduced"
                if not interrupted.is_set():
                    reason = str(error)
                raise LookupError(f"the repro of {function} is not reduced: {reason}") from error
            document = self._engine.documents.get(path)
            links: tuple[Linked, ...] = ()
            if document is not None:
                links = links_of(text, processes.folder, path, document.module, function)
            self._written.put((path, function, REDUCED), _Written(out, text, links, known.check))
            return ReproDocument(REDUCED, function, str(out), facts(event))

    def document(self, path: str, function: str, kind: DocumentKind) -> VirtualText:
        """Return the virtual document of a repro.

        Raises:
            LookupError: there is none.
        """
        written = self._of(path, function, kind)
        return VirtualText(written.file.name, written.text, written.links)

    async def aclose(self) -> None:
        """Cancel what is running, and end its processes."""
        await self._running.aclose()

    def _of(self, path: str, function: str, kind: DocumentKind) -> _Written:
        written = self._written.get((path, function, kind))
        if written is None:
            raise LookupError(f"there is no {kind} of {function}: extract a repro first")
        return written


async def _extracted(
    processes: Processes, trace: Trace, module: str, file: Path, check: str, report: Report
) -> tuple[Event, str]:
    """Call a function, and write the repro; return what came of it, and the check that holds.

    Raises:
        NoResult: it does not fail, or not in the same way again; the message says which.
    """
    with tempfile.TemporaryDirectory(prefix="jaxsight-") as name:
        case, request, text = (Path(name, part) for part in ("case", "request", "text"))
        await asyncio.to_thread(private.write, request, encode(trace))
        await asyncio.to_thread(private.write, text, module.encode("utf-8", "replace"))
        report(f"calling {trace.function} with its example inputs")
        died = await processes.call(case, request, text, check)
        check = "" if died is not None else check
        report("writing the repro, and running it")
        event = await processes.followed(emit_command(processes.python, case, file, died, check))
    if not event["reproduces"]:
        raise NoResult(f"the file {difference(event)}")
    return event, check


_ORIGIN = re.compile(r"Captured from (.+):(\d+) in (\S+)\.$")


def links_of(text: str, root: str, path: str, module: Module, subject: str) -> tuple[Linked, ...]:
    """Return links from the functions of a repro, and from the place of its failure.

    Functions are linked to the first one of the same name, `main` to the subject.

    Args:
        text: the repro.
        root: the folder in which it was written, which its places are relative to.
        path: the file that the repro is of.
        module: the module of that file.
        subject: the qualified name of the function that was called.
    """
    links = []
    for number, line in enumerate(text.split("\n")):
        match = _ORIGIN.match(line)
        if match is not None and Path(root, match[1]) == Path(path):
            at = int(match[2]) - 1
            end = len(module.line(at)) if at < len(module.text.split("\n")) else 0
            links.append(Linked(number, match[3], Range(Position(at, 0), Position(at, end))))
    places = {}
    for placed in reversed(module.functions):
        name = placed.function.qualname
        places[name.rpartition(".")[2]] = placed.name_range
        if name == subject:
            places["main"] = placed.name_range
    links += [
        Linked(node.lineno - 1, node.name, places[node.name])
        for node in ast.walk(parse(text))
        if isinstance(node, ast.FunctionDef) and node.name in places
    ]
    return tuple(sorted(links, key=lambda link: link.line))


EXTRACT = "jaxsight.extractRepro"
REDUCE = "jaxsight.reduceRepro"
KIND = "refactor.rewrite.jaxsight.repro"


def actions_of(
    engine: Engine, path: str, subject: Subject, range: Range, view: View | None, is_extracted: bool
) -> Iterator[Action]:
    """Yield the actions on a function's name, and in its body if something is wrong with it.

    Args:
        engine: the engine.
        path: the file.
        subject: a function with example inputs.
        range: where actions are wanted.
        view: the last answer about the function, if it is known.
        is_extracted: whether a repro of the function was extracted.
    """
    if subject.broken or subject.function.refused:
        return
    name = subject.name
    is_on_name = range.touches(subject.name_range)
    reply = view.answer.reply if view is not None else None
    of_inputs = isinstance(reply, Failed) and reply.failure.stage == "inputs"
    error: Finding | None = None
    if view is not None and not view.is_traced and not of_inputs:
        error = next(failures.reported(view), None)
    if error is not None and (is_on_name or range.touches(error.range)):
        yield _action(path, subject, error)
    else:
        refused = engine.programs.refusal(view) if view is not None else None
        has_crashed = refused is not None and refused.trouble.kind == "death"  # of the compiler
        if is_on_name or has_crashed:
            yield _action(path, subject)
    if is_on_name and is_extracted:
        yield Action(f"Reduce repro of {name}", KIND, command=REDUCE, arguments=(path, name))


def _action(path: str, subject: Subject, finding: Finding | None = None) -> Action:
    title = f"Extract repro of {subject.name}"
    return Action(title, KIND, command=EXTRACT, arguments=(path, subject.name), finding=finding)
