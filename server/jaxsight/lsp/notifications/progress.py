"""`$/progress`: progress bars for the engine's long operations, one per key."""

from __future__ import annotations

import asyncio
import itertools
import logging

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.events import Progress
from jaxsight.lsp.context import Context
from jaxsight.lsp.convert import notice

log = logging.getLogger(__name__)


class ProgressBars:
    """The bars that are open."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._numbers = itertools.count(1)
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
            token = f"jaxsight/{next(self._numbers)}"
            self._context.start(self._run(token, event.title, steps), f"progress of {event.key}")
        steps.put_nowait(event)
        if event.done:
            del self._open[event.key]

    async def _run(self, token: str, title: str, steps: asyncio.Queue[Progress]) -> None:
        bar = self._context.connection.work_done_progress
        try:
            await bar.create_async(token)
        except JsonRpcException as error:
            log.info("client rejected progress reports: %s", error)
            return
        step = await steps.get()
        begin = types.WorkDoneProgressBegin(
            title=notice(title), message=notice(step.detail) or None, cancellable=False
        )
        bar.begin(token, begin)
        while not step.done:
            step = await steps.get()
            if not step.done:
                bar.report(token, types.WorkDoneProgressReport(message=notice(step.detail) or None))
        bar.end(token, types.WorkDoneProgressEnd(message=notice(step.detail) or None))
        bar.tokens.pop(token, None)
