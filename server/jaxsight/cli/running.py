"""Run a session for one command: its events become a spinner, lines on stderr, or an error.

Only the command's result goes to stdout.
The output of user code goes to stderr, after the file's name, and so do notes: the Python that runs
the code, and untrusted settings and environments that are ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from jaxsight.cli.errors import PYTHON_OPTION, CommandError, of_python_option
from jaxsight.cli.given import given
from jaxsight.cli.notes import print_note
from jaxsight.cli.printing import Printer, Spinner, Text, styled
from jaxsight.events import Consent, Event, Message, Output, Progress, Status
from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.text.inert import one_line, printed
from jaxsight.trust.words import shown_path

T = TypeVar("T")


class Running:
    """A session whose tracer may fail to start: then every wait ends with that error."""

    def __init__(
        self,
        session: Session,
        errors: Printer,
        spinner: Spinner | None,
        *,
        is_python_option: bool = False,
    ) -> None:
        """Use a session; `is_python_option`: `--python` has chosen the interpreter."""
        self.session = session
        self._errors = errors
        self._spinner = spinner
        self._is_python_option = is_python_option
        self._failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._told: list[str] = []
        self._pythons: set[str] = set()

    async def get(self, answer: Awaitable[T]) -> T:
        """Return the session's answer.

        Raises:
            CommandError: no tracer starts.
        """
        task = asyncio.ensure_future(answer)
        either: set[asyncio.Future[Any]] = {task, self._failed}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        while not self.session.events.empty():
            self._take(self.session.events.get_nowait())
        if self._failed.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            raise CommandError(self._failed.result())
        return await task

    async def asked(self, answer: Awaitable[T]) -> T:
        """Return the session's answer about something that the user named.

        Raises:
            CommandError: it does not exist, or no tracer starts.
        """
        try:
            return await self.get(answer)
        except LookupError as error:
            raise CommandError(str(error.args[0])) from error

    def python(self, path: Path) -> dict[str, str] | None:
        """Return the interpreter that traces a file's functions, for JSON."""
        found = self.session.python(str(path))
        if found is None:
            return None
        return {**asdict(found), "reason": self._reason(found.reason)}

    def say(self, text: str) -> None:
        """Show the current step next to the spinner."""
        if self._spinner is not None:
            self._spinner.update(Text(one_line(text)))

    async def follow(self) -> None:
        """Take the session's events until cancelled."""
        while True:
            self._take(await self.session.events.get())

    def tell_errors(self) -> None:
        """Print error messages, except the one that the command ends with."""
        failure = self._failed.result() if self._failed.done() else None
        for text in self._told:
            if text != failure:
                self._errors.labelled("error", "bold red", text)

    def _take(self, event: Event) -> None:
        match event:
            case Status(state="failed" | "untrusted", detail=detail):
                if not self._failed.done():
                    self._failed.set_result(self._of_option(detail))
            case Status(state="starting", python=python, reason=reason):
                self._name_python(python, reason)
                self.say(f"starting JAX in {python}" if python else "starting JAX")
            case Progress(title=title, detail=detail, done=False):
                self.say(f"{title} {detail}".rstrip())
            case Output(path=path, text=text):
                for line in printed(text).splitlines():
                    self._errors.print(styled((f"{one_line(path)}: ", "dim"), line))
            case Message(level="error", text=text):
                self._told.append(self._of_option(text))
            case Message(level="warning", text=text):
                self._errors.labelled("warning", "bold yellow", text)
            case Consent(folder=folder, what=what) if what:
                remedy = self.session.remedy(folder, what)
                self.note(f"{shown_path(what)} is not used until you allow it; {remedy}")
            case _:
                pass

    def note(self, text: str) -> None:
        """Print a note on stderr."""
        print_note(self._errors, f"note: {text}")

    def _name_python(self, python: str, reason: str) -> None:
        if python and python not in self._pythons:
            self._pythons.add(python)
            self.note(f"Python: {shown_path(python)} ({self._reason(reason)})")

    def _reason(self, reason: str) -> str:
        """Return why an interpreter was chosen; the engine knows `--python` as a setting."""
        return PYTHON_OPTION if self._is_python_option else reason

    def _of_option(self, error: str) -> str:
        """Return an error about the choice of an interpreter as one about `--python`."""
        is_choice = self._is_python_option and not self._pythons
        return of_python_option(error) if is_choice else error


@asynccontextmanager
async def running(
    paths: Iterable[Path], editor: Mapping[str, object], allow: Sequence[str] = ()
) -> AsyncIterator[Running]:
    """Run a session over files and folders; end it with all its processes.

    Args:
        paths: files and folders on the command line, which the user thereby trusts.
        editor: the settings with the highest precedence.
        allow: hosts and interpreters that projects may use.
    """
    named = await asyncio.to_thread(given, paths, allow)
    errors = Printer(stderr=True)
    waiting: AbstractContextManager[Spinner | None] = nullcontext()
    if errors.is_terminal:
        waiting = errors.status("starting JAX")
    with waiting as spinner:
        session = Session(Projects(named.trust))
        run = Running(session, errors, spinner, is_python_option="python" in editor)
        for line in named.notes:
            print_note(errors, line)
        following = asyncio.create_task(run.follow())
        try:
            # Compile only what the command needs.
            quiet = {"inlayHints": {"kernels": False, "barriers": False}}
            session.configure(named.roots, {**quiet, **editor})
            yield run
        finally:
            following.cancel()
            run.tell_errors()
            await session.aclose()
