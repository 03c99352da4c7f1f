"""Progress bars for the engine's long operations and for commands, and what status bars show.

Bars are `$/progress`. `jaxsight/status` says what the tracers of each root do; it is logged, too.
`jaxsight/fileStatus` says what a file is compiled for, and how many of its functions are traced.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.events import FileStatus, Progress, Status
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import inert, notice
from jaxsight.lsp.documents.uris import uri_of
from jaxsight.text.inert import one_line

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class ProgressBars:
    """The bars that are open."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._open: dict[str, asyncio.Queue[Progress]] = {}

    def show(self, event: Progress) -> None:
        """Open, update or close the bar of the event's key, if the client shows progress."""
        if not self._context.client.shows_progress:
            return
        steps = self._open.get(event.key)
        if steps is None:
            if event.done:
                return
            steps = self._open[event.key] = asyncio.Queue()
            self._context.start(self._run(event.title, steps), f"progress of {event.key}")
        steps.put_nowait(event)
        if event.done:
            del self._open[event.key]

    async def _run(self, title: str, steps: asyncio.Queue[Progress]) -> None:
        async with progress_bar(self._context, title, cancellable=False) as bar:
            while not (step := await steps.get()).done:
                bar.report(step.detail)


class CancellableBar:
    """A progress bar."""

    def __init__(self, context: ClientContext, token: str = "") -> None:
        """Return a bar; without a token, the client shows none."""
        self._context = context
        self._token = token
        self._actions: list[Callable[[], object]] = []
        self.is_cancelled = False

    def report(self, text: str) -> None:
        """Show what is being done."""
        if self._token:
            report = types.WorkDoneProgressReport(message=notice(text) or None)
            self._context.connection.work_done_progress.report(self._token, report)

    def when_cancelled(self, action: Callable[[], object]) -> None:
        """Call a function once the user cancels."""
        self._actions.append(action)
        if self.is_cancelled:
            action()

    async def result_of(self, work: Coroutine[object, object, Result]) -> Result | None:
        """Return the result of work that ends when the user cancels, which is `None`."""
        task = asyncio.ensure_future(work)
        self.when_cancelled(task.cancel)
        try:
            return await task
        except asyncio.CancelledError:
            if self.is_cancelled:
                return None
            raise

    def cancel(self) -> None:
        """Handle that the user cancels."""
        self.is_cancelled = True
        for action in self._actions:
            action()


@asynccontextmanager
async def progress_bar(
    context: ClientContext, title: str, *, cancellable: bool = True
) -> AsyncIterator[CancellableBar]:
    """Show a progress bar, if the client shows progress."""
    progress = context.connection.work_done_progress
    token = f"jaxsight/{uuid.uuid4()}"
    is_created = context.client.shows_progress
    try:
        if is_created:
            await progress.create_async(token)
    except JsonRpcException as error:
        log.info("client rejected progress reports: %s", error)
        is_created = False
    if not is_created:
        yield CancellableBar(context)
        return
    bar = CancellableBar(context, token)

    def ended(future: Future[object]) -> None:
        if future.cancelled():
            bar.cancel()

    progress.tokens[token].add_done_callback(ended)
    begin = types.WorkDoneProgressBegin(title=notice(title), cancellable=cancellable)
    progress.begin(token, begin)
    try:
        yield bar
    finally:
        progress.end(token, types.WorkDoneProgressEnd())
        progress.tokens.pop(token, None)


STATUS = "jaxsight/status"
FILE = "jaxsight/fileStatus"


class Statuses:
    """The last status of each root."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self.sent: dict[str, dict[str, object]] = {}
        """The last status of each root, as it was sent."""
        self._logged: dict[str, tuple[types.MessageType, str]] = {}

    def show(self, status: Status) -> None:
        """Send a status to the client, and log it if it is ready, failed or untrusted."""
        params = self.sent[status.root] = {**inert(asdict(status)), "root": uri_of(status.root)}
        self._context.notify(STATUS, params)
        is_bad = status.state in ("failed", "untrusted")
        line = types.MessageType.Warning if is_bad else types.MessageType.Info, _line(status)
        if (is_bad or status.state == "ready") and self._logged.get(status.root) != line:
            self._logged[status.root] = line
            self._context.log_message(*line)

    def show_file(self, status: FileStatus) -> None:
        """Send what is known of a file to clients that know us."""
        if self._context.client.knows_us:
            told = inert(asdict(status))
            params = {"uri": uri_of(status.path)} | {
                re.sub(r"_(\w)", lambda found: found[1].upper(), name): value
                for name, value in told.items()
                if name != "path"
            }
            self._context.notify(FILE, params)


def _line(status: Status) -> str:
    facts = [status.detail, status.python, status.reason, status.jax and f"jax {status.jax}"]
    details = ", ".join(filter(None, facts))
    line = f"{one_line(status.root)}: {status.state}"
    return f"{line} ({one_line(details)})" if details else line
