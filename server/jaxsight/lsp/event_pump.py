"""Forward the engine's events: refreshes, statuses, output of user code, messages, progress.

Besides the standard's messages there are notifications of our own, for clients that support them:
`jaxsight/status` (sent to all clients, which ignore unknown notifications), `jaxsight/output` and
`jaxsight/textDocumentContentRefresh` (with `capabilities.experimental.jaxsight`), and
`jaxsight/panelRefresh` (for those that requested a panel).
Other clients get output as lines of the log.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.events import Consent, FileStatus, Message, Output, Progress, Refresh, Status
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.documents.uris import uri_of
from jaxsight.lsp.features.diagnostics import Diagnostics
from jaxsight.lsp.features.panel import Panels
from jaxsight.lsp.features.panel_page import PanelPages
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.progress import ProgressBars, Statuses
from jaxsight.text.inert import one_line, printed
from jaxsight.text.terminal import unasked
from jaxsight.trust.decisions import command

log = logging.getLogger(__name__)

OUTPUT = "jaxsight/output"

_MESSAGE_TYPES = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
}


class EventPump:
    """Forwards each event to the feature that shows it."""

    def __init__(
        self,
        context: ClientContext,
        diagnostics: Diagnostics,
        virtual_documents: VirtualDocuments,
        panels: Panels,
        pages: PanelPages,
        statuses: Statuses,
    ) -> None:
        self._context = context
        self._diagnostics = diagnostics
        self._of_files = (virtual_documents, panels, pages)
        self._statuses = statuses
        self._refreshed: dict[str, bool] = {}
        """What the client refreshes now, each with whether it is to do so again."""
        self._progress_bars = ProgressBars(context)

    async def run(self) -> None:
        """Forward events for as long as the connection lasts."""
        context = self._context
        while True:
            match await context.session.events.get():
                case Refresh(path):
                    self._diagnostics.schedule(path)
                    self._refresh()
                    for feature in self._of_files:
                        feature.refresh(path)
                case Status() as status:
                    self._statuses.show(status)
                case FileStatus() as file_status:
                    self._statuses.show_file(file_status)
                case Output(path, text):
                    if context.client.knows_us:
                        context.notify(OUTPUT, {"uri": uri_of(path), "text": printed(text)})
                    else:
                        line = f"{one_line(path)}: {printed(text).rstrip()}"
                        context.log_message(types.MessageType.Log, line)
                case Message(level, text):
                    context.show_message(_MESSAGE_TYPES[level], text)
                case Progress() as progress:
                    self._progress_bars.show(progress)
                case Consent() as consent:
                    context.start(self._ask(consent), "asking for consent")

    def _refresh(self) -> None:
        """Ask the client to refresh hints, lenses and diagnostics, as far as it supports that.

        These requests concern all open documents, and traces end in bursts: until the client has
        answered a request, further ones of its kind are merged into one.
        """
        connection, client = self._context.connection, self._context.client
        requests: dict[str, tuple[bool, Callable[[None], Awaitable[None]]]] = {
            "inlay hints": (client.refreshes_hints, connection.workspace_inlay_hint_refresh_async),
            "code lenses": (client.refreshes_lenses, connection.workspace_code_lens_refresh_async),
            "diagnostics": (
                client.pulls_diagnostics,
                connection.workspace_diagnostic_refresh_async,
            ),
        }
        for kind, (is_supported, request) in requests.items():
            if is_supported:
                is_running = self._refreshed[kind] = kind in self._refreshed
                if not is_running:
                    self._context.start(self._send(kind, request), f"refreshing {kind}")

    async def _send(self, name: str, request: Callable[[None], Awaitable[None]]) -> None:
        try:
            await request(None)
            while self._refreshed[name]:
                self._refreshed[name] = False
                await request(None)
        except JsonRpcException as error:
            log.info("client rejected the refresh of %s: %s", name, error)
        finally:
            del self._refreshed[name]

    async def _ask(self, consent: Consent) -> None:
        """Ask the user for consent.

        Any answer but the offered ones counts as none, and a client may leave the question open
        forever.
        """
        context, kind = self._context, types.MessageType.Warning
        try:
            answer = await context.ask(consent.text, consent.answers, kind)
        except JsonRpcException as error:
            log.warning("client rejected a question to the user: %s", error)
            # Helix, for example, shows no questions: tell its users the command for the terminal.
            why = unasked(command(consent.folder, consent.what)).replace("this", "This", 1)
            context.show_message(kind, f"{consent.text} {why}.")
            return
        await context.session.decide(consent, answer)
