"""A session for one command: its events become a spinner, lines on stderr, or the error that ends the command.

Only what the user asked for goes to stdout; what user code prints goes to stderr, after the file's name.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from typing import Any, TypeVar

from rich.console import Console
from rich.status import Status as Spinner
from rich.text import Text

from jaxsight.cli.errors import CommandError
from jaxsight.engine.events import Event, Message, Output, Progress, Status
from jaxsight.engine.session import Session

T = TypeVar("T")


class Running:
    """A session whose tracer may fail to start: every wait on it ends with that failure's words."""

    def __init__(self, session: Session, errors: Console, spinner: Spinner | None) -> None:
        self.session = session
        self._errors = errors
        self._spinner = spinner
        self._failed: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._told: list[str] = []

    async def get(self, answer: Awaitable[T]) -> T:
        """What the session answers.

        Raises:
            CommandError: no tracer can be had.
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
        """What the session answers to a question about something that the user named.

        Raises:
            CommandError: there is none, or no tracer can be had.
        """
        try:
            return await self.get(answer)
        except LookupError as error:
            raise CommandError(str(error.args[0])) from error

    def say(self, text: str) -> None:
        """What is being done, beside the spinner."""
        if self._spinner is not None:
            self._spinner.update(text)

    async def follow(self) -> None:
        """Take the session's events until cancelled."""
        while True:
            self._take(await self.session.events.get())

    def tell_errors(self) -> None:
        """Print the error messages that came, but for the one that the command ends with anyway."""
        failure = self._failed.result() if self._failed.done() else None
        for text in self._told:
            if text != failure:
                self._errors.print(Text.assemble(("error: ", "bold red"), text))

    def _take(self, event: Event) -> None:
        match event:
            case Status(state="failed", detail=detail):
                if not self._failed.done():
                    self._failed.set_result(detail)
            case Status(state="starting", python=python):
                self.say(f"starting JAX in {python}" if python else "starting JAX")
            case Progress(title=title, detail=detail, done=False):
                self.say(f"{title} {detail}".rstrip())
            case Output(path=path, text=text):
                for line in text.splitlines():
                    self._errors.print(Text.assemble((f"{path}: ", "dim"), line))
            case Message(level="error", text=text):
                self._told.append(text)
            case Message(level="warning", text=text):
                self._errors.print(Text.assemble(("warning: ", "bold yellow"), text))
            case _:
                pass


@asynccontextmanager
async def running(roots: list[str], editor: Mapping[str, object]) -> AsyncIterator[Running]:
    """A session over `roots`, with `editor` as the settings that win; ended with all its processes."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    waiting: AbstractContextManager[Spinner | None] = nullcontext()
    if errors.is_terminal:
        waiting = errors.status("starting JAX")
    with waiting as spinner:
        session = Session()
        run = Running(session, errors, spinner)
        following = asyncio.create_task(run.follow())
        try:
            # Nothing is compiled but what the command asks for.
            quiet = {"inlayHints": {"kernels": False, "barriers": False}}
            session.configure(roots, {**quiet, **editor}, trusted=True)
            yield run
        finally:
            following.cancel()
            run.tell_errors()
            await session.aclose()
