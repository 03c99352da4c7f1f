"""Ask the client to refresh hints, lenses and diagnostics after a trace.

These requests concern all open documents, and traces end in bursts: until the client has answered
a request, further ones of its kind are merged into one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Literal

from pygls.exceptions import JsonRpcException

from jaxsight.lsp.context import ClientContext

log = logging.getLogger(__name__)

Refreshed = Literal["inlay hints", "code lenses", "diagnostics"]


class Refresher:
    """Sends refresh requests, at most one of each kind at a time."""

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._pending: set[Refreshed] = set()
        self._again: set[Refreshed] = set()

    def refresh(self) -> None:
        """Ask the client to refresh everything that it supports."""
        connection, client = self._context.connection, self._context.client
        if client.refreshes_hints:
            self._ask("inlay hints", lambda: connection.workspace_inlay_hint_refresh_async(None))
        if client.refreshes_lenses:
            self._ask("code lenses", lambda: connection.workspace_code_lens_refresh_async(None))
        if client.pulls_diagnostics:
            self._ask("diagnostics", lambda: connection.workspace_diagnostic_refresh_async(None))

    def _ask(self, kind: Refreshed, request: Callable[[], Awaitable[None]]) -> None:
        if kind in self._pending:
            self._again.add(kind)
            return
        self._pending.add(kind)
        self._context.start(self._run(kind, request), f"refreshing {kind}")

    async def _run(self, kind: Refreshed, request: Callable[[], Awaitable[None]]) -> None:
        try:
            await request()
            while kind in self._again:
                self._again.discard(kind)
                await request()
        except JsonRpcException as error:
            log.info("client rejected the refresh of %s: %s", kind, error)
        finally:
            self._pending.discard(kind)
