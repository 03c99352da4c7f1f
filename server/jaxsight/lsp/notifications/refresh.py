"""Ask the client to refresh hints, lenses and diagnostics after a trace.

These requests concern all open documents, and traces end in bursts: until the client has answered
a request, further ones of its kind are merged into one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pygls.exceptions import JsonRpcException

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

log = logging.getLogger(__name__)


class Refresher:
    """Sends refresh requests, at most one of each kind at a time."""

    def __init__(self, server: JaxsightServer) -> None:
        self._server = server
        self._asking: set[str] = set()
        self._again: set[str] = set()

    def refresh(self) -> None:
        """Ask the client to refresh everything that it supports."""
        server, client = self._server, self._server.client
        if client.refreshes_hints:
            self._ask("inlay hints", lambda: server.workspace_inlay_hint_refresh_async(None))
        if client.refreshes_lenses:
            self._ask("code lenses", lambda: server.workspace_code_lens_refresh_async(None))
        if client.pulls_diagnostics:
            self._ask("diagnostics", lambda: server.workspace_diagnostic_refresh_async(None))

    def _ask(self, what: str, request: Callable[[], Awaitable[None]]) -> None:
        if what in self._asking:
            self._again.add(what)
            return
        self._asking.add(what)
        self._server.background(self._run(what, request), f"refreshing {what}")

    async def _run(self, what: str, request: Callable[[], Awaitable[None]]) -> None:
        try:
            await request()
            while what in self._again:
                self._again.discard(what)
                await request()
        except JsonRpcException as error:
            log.info("client rejected the refresh of %s: %s", what, error)
        finally:
            self._asking.discard(what)
