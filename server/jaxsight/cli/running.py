"""Run a session for one command: its events become a spinner, lines on stderr, or an error.

Only the command's result goes to stdout. The output of user code goes to stderr, after the file's
name, as do notes: which Python runs the code, and what is ignored because it is not trusted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from jaxsight.cli.errors import CommandError
from jaxsight.cli.given import given
from jaxsight.cli.notes import print_note
from jaxsight.cli.printing import Printer, Spinner, Text, styled
from jaxsight.engine.events import Consent, Event, Message, Output, Progress, Status
from jaxsight.engine.inert import one_line, printed
from jaxsight.engine.projects import Projects
from jaxsight.engine.session import Session
from jaxsight.engine.trust.words import shown_path

T = TypeVar("T")


class Running:
    """A session whose tracer may fail to start: then every wait ends with that error."""

    def __init__(self, session: Session, errors: Printer, spinner: Spinner | None) -> None:
        self.session = session
        self._errors = errors
        self._spinner = spinner
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
        return asdict(found) if found is not None else None

    def say(self, text: str) -> None:
        """Show the current step next to the spinner."""
        if self._spinner is not None:
            self._spinner.update(Text(one_line(text)))

    async def follow(self) -> None:
        """Take the session's events until cancelled."""
        while True:
            self._take(await self.session.events.get())

    def tell_errors(self) -> None:
        """Print the error messages that came, but for the one that the command ends with anyway."""
        failure = self._failed.result() if self._failed.done() else None
        for text in self._told:
            if text != failure:
                self._errors.labelled("error", "bold red", text)

    def _take(self, event: Event) -> None:
        match event:
            case Status(state="failed" | "untrusted", detail=detail):
                if not self._failed.done():
                    self._failed.set_result(detail)
            case Status(state="starting", python=python, reason=reason):
                self._name_python(python, reason)
                self.say(f"starting JAX in {python}" if python else "starting JAX")
            case Progress(title=title, detail=detail, done=False):
                self.say(f"{title} {detail}".rstrip())
            case Output(path=path, text=text):
                for line in printed(text).splitlines():
                    self._errors.print(styled((f"{one_line(path)}: ", "dim"), line))
            case Message(level="error", text=text):
                self._told.append(text)
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
            self.note(f"Python: {shown_path(python)} ({reason})")


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
        run = Running(session, errors, spinner)
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
