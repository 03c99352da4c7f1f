"""Asks jaxsight about cases, and sorts its answers by whether they are the truth."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from jaxsight.features.named_function import view_of
from jaxsight.projects.projects import Projects
from jaxsight.queries.documents import Document, Subject, module_name
from jaxsight.queries.traces import tracer_requests
from jaxsight.session import Session
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.targets import target as targets
from jaxsight.trust import Policy, Trust
from jaxsight.wire.messages.inputs import Argument
from jaxsight.wire.messages.replies import Failed, Lowered, Traced
from tests.quiet import QUIET
from tests.truth import oracle
from tests.truth.cases import Case
from tests.truth.oracle import Request, Truth

PATIENCE = 120
"""Seconds that one answer may take."""

CRASHED = "Crashed"
"""What stands for the error of an answer that jaxsight itself failed to give."""


class Verdict(StrEnum):
    """How an answer relates to the truth."""

    RIGHT = "right"
    CAVEAT = "right with caveat"
    DIFFERENT = "different with caveat"
    REFUSED = "refused"
    WRONG = "silently wrong"


@dataclass(frozen=True, slots=True)
class Given:
    """What jaxsight answered: a jaxpr, with the digest of the program where that matters, or an
    error's type and message.
    """

    jaxpr: str = ""
    program: str = ""
    error: str = ""
    message: str = ""
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """One function of a case after `stage` edits."""

    family: str
    case: str
    stage: int
    function: str
    verdict: Verdict
    given: Given
    truth: Truth
    text: str = ""
    """The main file, where it is none of the case's."""

    @property
    def untrue(self) -> tuple[str, ...]:
        """Caveats that name an exception which importing the module does not raise."""
        imported = self.truth.stage != "import"
        return tuple(each for each in self.given.caveats if imported and " raised " in each)


def verdict(given: Given, truth: Truth) -> Verdict:
    """Sort an answer."""
    same = (
        not truth.error
        and given.jaxpr == truth.jaxpr
        and (not truth.program or given.program == truth.program)
    )
    if given.error == CRASHED:
        return Verdict.REFUSED
    if given.error:
        # Where importing raises another error, no wrong program is shown either.
        return Verdict.RIGHT if truth.error else Verdict.REFUSED
    if same:
        return Verdict.CAVEAT if given.caveats else Verdict.RIGHT
    return Verdict.DIFFERENT if given.caveats else Verdict.WRONG


def request(folder: Path, main: str, text: str, files: Sequence[str] = ()) -> Request:
    """What to ask the oracle about a module that is written at `main` below `folder`; `files` are
    the texts of all its files.
    """
    path = folder / main
    document = Document(str(path), text)
    functions = []
    for subject in document.subjects(ExampleSettings({}, {})):
        if not traceable(subject):
            continue
        first = subject.examples.sets[0]
        arguments = tuple((argument.name, _plain(argument)) for argument in first.arguments)
        functions.append((subject.name, arguments, dict(first.sizes)))
    fresh = oracle.needs_fresh([text, *files])
    return Request(str(folder), module_name(str(path)), tuple(functions), fresh)


def traceable(subject: Subject) -> bool:
    """Whether a function can be asked about: its example inputs are complete, and it is not nested
    or a generator.
    """
    return bool(subject.examples.sets) and not subject.function.refused and not subject.broken


def _plain(argument: Argument) -> dict[str, Any]:
    return dataclasses.asdict(argument.spec)


@dataclass(frozen=True, slots=True)
class Stage:
    """The files of a case as they stand after some of its edits."""

    case: Case
    number: int
    files: Mapping[str, str]

    @property
    def text(self) -> str:
        return self.files[self.case.main]


def stages(case: Case) -> Iterator[Stage]:
    """The case as it begins, and after each edit."""
    files = dict(case.files)
    yield Stage(case, 0, dict(files))
    for number, (path, text) in enumerate(case.edits, 1):
        files[path] = text
        yield Stage(case, number, dict(files))


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Put files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="truth-")).resolve()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def truths(cases: Sequence[Case], python: str, jobs: int) -> dict[tuple[str, str, int], Any]:
    """The truth of each case, after each of its edits, by family, name and number of edits."""
    with scratch() as folder:
        keys: list[tuple[str, str, int]] = []
        requests: list[Request] = []
        for case in cases:
            for stage in stages(case):
                where = folder / f"{case.family}__{case.name}__{stage.number}"
                write(where, stage.files)
                keys.append((case.family, case.name, stage.number))
                requests.append(request(where, case.main, stage.text, list(stage.files.values())))
        found = oracle.truths(requests, python, jobs)
    return dict(zip(keys, found, strict=True))


@asynccontextmanager
async def session(root: Path, python: str, **settings: object) -> AsyncIterator[Session]:
    """A session on a folder, with its tracers."""
    opened = Session(Projects(Trust(Policy.ALWAYS)))
    opened.configure([str(root)], {**QUIET, "python": python, "target": "cpu", **settings})
    try:
        yield opened
    finally:
        await opened.aclose()


async def given(session: Session, path: Path, function: str, program: bool) -> Given:
    """What jaxsight answers about a function, lowered where `program`."""
    try:
        return await asyncio.wait_for(_given(session, path, function, program), PATIENCE)
    except TimeoutError:
        return Given(error="Timeout", message=f"no answer within {PATIENCE} s")
    except LookupError as error:
        return Given(error="Unasked", message=str(error.args[0]))
    except Exception as error:  # noqa: BLE001 - jaxsight itself failed: an answer to be counted
        return Given(error=CRASHED, message=f"{type(error).__name__}: {error}")


async def _given(session: Session, path: Path, function: str, program: bool) -> Given:
    view = await view_of(session.engine, str(path), function)
    caveats = tuple(f"line {c.range.start.line + 1} {c.reason}" for c in view.caveats)
    reply = view.answer.reply
    if isinstance(reply, Failed):
        name = reply.failure.type.rpartition(".")[2]
        return Given(error=name, message=reply.failure.message[:300], caveats=caveats)
    if not isinstance(reply, Traced):
        return Given(error="Died", message=str(reply)[:300], caveats=caveats)
    if view.stale:
        return Given(error="Stale", message="only an earlier text's answer is known")
    shown = await session.show(str(path), function)
    # Headings of functions and modules are comments between equations.
    lines = (line for line in shown.text.split("\n") if not line.lstrip().startswith("# "))
    text = "\n".join(lines).replace(f"{path.parent}/", "")
    digest = ""
    if program and reply.constants:
        lowered = await tracer_requests.lower(
            session.engine.projects.of(str(path)), view.answer, targets.parse("cpu")
        )
        digest = lowered.key if isinstance(lowered, Lowered) else str(lowered)[:300]
    return Given(jaxpr=text, program=digest, caveats=caveats)


async def measured(
    cases: Sequence[Case], python: str, jobs: int, *, alone: bool = False
) -> list[Judged]:
    """Judge every function of the cases: those in one session after the other, or `alone` in a
    session each.
    """
    known = await asyncio.to_thread(truths, cases, python, jobs)
    judged: list[Judged] = []
    with scratch() as folder:
        apart = [case for case in cases if alone or case.alone]
        together = [case for case in cases if not (alone or case.alone)]
        shares = [together[number::jobs] for number in range(jobs)]
        waiting = list(apart)

        async def share(number: int) -> None:
            root = folder / f"shared{number}"
            root.mkdir()
            if shares[number]:
                async with session(root, python) as opened:
                    for case in shares[number]:
                        judged.extend(await _judged(opened, root / _folder(case), case, known))
            while waiting:
                case = waiting.pop()
                root = folder / _folder(case)
                async with session(root, python) as opened:
                    judged.extend(await _judged(opened, root, case, known))

        await asyncio.gather(*(share(number) for number in range(jobs)))
    order = {(case.family, case.name): number for number, case in enumerate(cases)}
    return sorted(judged, key=lambda each: (order[each.family, each.case], each.stage))


def _folder(case: Case) -> str:
    return f"{case.family}__{case.name}"


async def _judged(
    session: Session, folder: Path, case: Case, known: dict[tuple[str, str, int], Any]
) -> list[Judged]:
    path = folder / case.main
    found: list[Judged] = []
    before: Mapping[str, str] = {}
    for stage in stages(case):
        changed = [name for name, text in stage.files.items() if before.get(name) != text]
        write(folder, {name: stage.files[name] for name in changed})
        if stage.number == 0:
            session.open(str(path), stage.text)
        elif case.main in changed:
            session.change(str(path), stage.text)
            session.saved(str(path))
        if others := [str(folder / name) for name in changed if name != case.main]:
            session.files_changed(others)
        before = stage.files
        for function, truth in known[case.family, case.name, stage.number].items():
            answer = await given(session, path, function, bool(truth.program))
            judge = verdict(answer, truth)
            found.append(
                Judged(case.family, case.name, stage.number, function, judge, answer, truth)
            )
    session.close(str(path))
    return found


def default_python() -> str:
    """The interpreter that runs this."""
    return sys.executable
