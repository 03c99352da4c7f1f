"""Run a session for one command: its events become a spinner, lines on stderr, or an error.

Only the command's result goes to stdout.
The output of user code goes to stderr, after the file's name, and so do notes: the Python that runs
the code, and untrusted settings and environments that are ignored.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from jaxsight.cli.errors import PYTHON_OPTION, CommandError, about_python_option, failing_on
from jaxsight.cli.execution import THIS_PROCESS
from jaxsight.cli.output.printing import Printer, Spinner, Text, print_note, styled
from jaxsight.cli.parameters import InputsChoice
from jaxsight.cli.trusted_paths import AGENT, TrustedPaths, trust_paths
from jaxsight.events import Consent, Event, Message, Output, Progress, Status
from jaxsight.projects.projects import IDLE, Projects
from jaxsight.text.inert import one_line, printed
from jaxsight.trust.decisions import SSH, path_text

if TYPE_CHECKING:
    from jaxsight.cli.sources.arguments import SourceFile
    from jaxsight.session import Session

T = TypeVar("T")

_SESSION = "jaxsight.session"


@dataclass(slots=True, eq=False)
class CommandRun:
    """A session whose tracer may fail to start: then every wait ends with that error."""

    session: Session
    inputs: InputsChoice
    _errors: Printer
    _spinner: Spinner | None
    _is_python_option: bool
    """Whether `--python` has chosen the interpreter."""
    _pythons: set[str]
    """Interpreters that were noted."""
    _failure: asyncio.Future[str] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    _error_messages: list[str] = field(default_factory=list)
    _targets: set[str] = field(default_factory=set)

    async def get(self, answer: Awaitable[T]) -> T:
        """Return the session's answer.

        Raises:
            CommandError: no tracer starts.
        """
        task = asyncio.ensure_future(answer)
        futures: set[asyncio.Future[Any]] = {task, self._failure}
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        while not self.session.events.empty():
            self._handle(self.session.events.get_nowait())
        if self._failure.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            raise CommandError(self._failure.result())
        return await task

    async def get_by_name(self, answer: Awaitable[T]) -> T:
        """Return the session's answer about something that the user named.

        Raises:
            CommandError: it does not exist, or no tracer starts.
        """
        with failing_on(LookupError):
            return await self.get(answer)

    def choose_target(self, name: str | None) -> None:
        """Compile for a target of the command line, if it names one.

        Raises:
            CommandError: it does not exist.
        """
        if name:
            with failing_on(LookupError):
                self.session.choose_target(name)

    def python(self, path: Path) -> dict[str, str] | None:
        """Return the interpreter that traces a file's functions, for JSON."""
        python = self.session.engine.projects.of(str(path)).interpreter
        if python is None:
            return None
        return {**asdict(python), "reason": self._reason(python.reason)}

    def python_path(self, path: Path) -> str:
        """Return the interpreter that traces a file's functions.

        Raises:
            CommandError: there is none, or it may not run.
        """
        project = self.session.engine.projects.of(str(path))
        if project.interpreter is None or project.held_back:
            why = project.problem or project.held_back
            raise CommandError(why or "no Python interpreter with JAX found")
        return project.interpreter.path

    def show_step(self, text: str) -> None:
        """Show the current step next to the spinner."""
        if self._spinner is not None:
            self._spinner.update(Text(one_line(text)))

    async def follow_events(self) -> None:
        """Handle the session's events until cancelled."""
        while True:
            self._handle(await self.session.events.get())

    def print_errors(self) -> None:
        """Print error messages, except the one that the command ends with."""
        failure = self._failure.result() if self._failure.done() else None
        for text in self._error_messages:
            if text != failure:
                self._errors.labelled("error", "bold red", text)

    def _handle(self, event: Event) -> None:
        match event:
            case Status(state="failed" | "untrusted", detail=detail):
                if not self._failure.done():
                    self._failure.set_result(self._about_option(detail))
            case Status(state="starting", python=python, reason=reason):
                self._note_python(python, reason)
                self.show_step(f"starting JAX in {python}" if python else "starting JAX")
            case Progress(title=title, detail=detail, done=False):
                self.show_step(f"{title} {detail}".rstrip())
            case Output(path=path, text=text) if AGENT not in os.environ:  # it reads our words
                for line in printed(text).splitlines():
                    self._errors.print(styled((f"{one_line(path)}: ", "dim"), line))
            case Message(level="error", text=text):
                self._error_messages.append(self._about_option(text))
            case Message(level="warning", text=text):
                self._errors.labelled("warning", "bold yellow", text)
            case Consent(folder=folder, what=program) if program:
                remedy = self.session.engine.projects.trust.remedy(folder, program)
                self.note(f"{path_text(program)} is not used until you allow it; {remedy}")

    def opened(self, files: Sequence[SourceFile]) -> Iterator[Path]:
        """Yield files one after the other, each open in the session meanwhile.

        Files that cannot be read are skipped, unless the command line names them.

        Raises:
            CommandError: such a file cannot be read.
        """
        for number, file in enumerate(files, 1):
            self.show_step(f"{number}/{len(files)} {file.path.name}")
            try:
                text, _ = file.read()
            except CommandError:
                if file.is_argument:
                    raise
                continue
            path = str(file.path)
            self.session.open(path, text, in_background=False)
            yield file.path
            self.session.close(path)

    def note_python(self, path: Path) -> None:
        """Print the interpreter of a file that need not be traced, as for one that is."""
        if (python := self.session.engine.projects.of(str(path)).interpreter) is not None:
            self._note_python(python.path, python.reason)

    def _note_python(self, python: str, reason: str) -> None:
        if python and python not in self._pythons:
            self._pythons.add(python)
            self.note(f"Python: {path_text(python)} ({self._reason(reason)})")

    def note_target(self, path: Path) -> None:
        """Print once what a file is compiled for, if that is the default target, and why."""
        target = self.session.engine.choices.target(str(path))
        if target.why_default and target.name not in self._targets:
            self._targets.add(target.name)
            self.note(f"target: {target.name}, {target.title} (default: {target.why_default})")

    def note(self, text: str) -> None:
        """Print a note on stderr."""
        print_note(self._errors, f"note: {text}")

    def _reason(self, reason: str) -> str:
        """Return why an interpreter was chosen; the engine knows `--python` as a setting."""
        return PYTHON_OPTION if self._is_python_option else reason

    def _about_option(self, error: str) -> str:
        """Return an error about the choice of an interpreter as one about `--python`."""
        is_choice = self._is_python_option and not self._pythons
        return about_python_option(error) if is_choice else error


async def _session(
    trusted: TrustedPaths,
    inputs: InputsChoice,
    settings: Mapping[str, object],
    paths: Sequence[Path],
    ahead: Sequence[str],
) -> Session:
    """Return a new session, for a command that needs modules `ahead` if it always traces."""
    kept = THIS_PROCESS.sessions
    idle = kept.idle if kept is not None else IDLE
    # A spare would import JAX once more, for a process that ends soon.
    written = inputs is InputsChoice.WRITTEN
    projects = Projects(trusted.trust, idle=idle, only_written=written, spares=0)
    projects.configure(trusted.roots, settings)
    if ahead:
        for path in paths:
            projects.of(str(path)).prestart()
    for module in (_SESSION, *ahead):
        await asyncio.to_thread(import_module, module)
    return cast("Session", import_module(_SESSION).Session(projects))


@asynccontextmanager
async def start_run(
    paths: Iterable[Path],
    python: str | None,
    allow: Sequence[str] | None = None,
    inputs: InputsChoice = InputsChoice.ALL,
    rules: Mapping[str, Sequence[str]] | None = None,
    *,
    targets: Iterable[str | None] = (),
    ahead: Sequence[str] = (),
    noted: str = "",
) -> AsyncIterator[CommandRun]:
    """Run a session over files and folders; end it with all its processes.

    Args:
        paths: files and folders on the command line, which the user thereby trusts.
        python: the option `--python`.
        allow: hosts and interpreters that projects may use.
        inputs: the example inputs that functions are traced with.
        rules: the settings `select` and `ignore`, if the command line has them.
        targets: the targets on the command line, whose hosts may be used.
        ahead: modules that are imported while JAX starts for the files, of a command that always
            traces.
        noted: an interpreter that another run of the command has noted.
    """
    paths = list(paths)
    hosts = (target for target in targets if target is not None and target.startswith(SSH))
    trusted = await asyncio.to_thread(trust_paths, paths, [*(allow or ()), *hosts])
    errors = Printer(stderr=True)
    status: AbstractContextManager[Spinner | None] = nullcontext()
    if errors.is_terminal:
        status = errors.status("starting JAX")
    with status as spinner:
        # Trace and compile only what the command needs.
        quiet = {"inlayHints": {"kernels": False, "barriers": False}}
        settings = {**quiet, **({"python": python} if python else {}), **(rules or {})}
        kept = THIS_PROCESS.sessions
        session = await kept.take(trusted, inputs, settings) if kept is not None else None
        running = paths if session is not None else []  # a tracer's start is noted by itself
        if session is None:
            session = await _session(trusted, inputs, settings, paths, ahead)
        pythons = {noted} if noted else set[str]()
        run = CommandRun(session, inputs, errors, spinner, bool(python), pythons)
        for line in trusted.notes:
            print_note(errors, line)
        for path in running:
            run.note_python(path if path.is_file() else path / "__init__.py")
        events = asyncio.create_task(run.follow_events())
        is_usable = False
        try:
            yield run
            is_usable = True
        except CommandError:
            is_usable = not run._failure.done()
            raise
        finally:
            events.cancel()
            run.print_errors()
            if kept is not None and is_usable:
                await kept.keep(trusted, inputs, settings, session)
            else:
                await session.aclose()
