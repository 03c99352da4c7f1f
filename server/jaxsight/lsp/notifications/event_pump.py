"""Forward the engine's events: refreshes, statuses, output of user code, messages, progress.

Besides the standard's messages there are notifications of our own, for clients that support them:
`jaxsight/status` (sent to all clients, which ignore unknown notifications), `jaxsight/output` and
`jaxsight/textDocumentContentRefresh` (with `capabilities.experimental.jaxsight`), and
`jaxsight/panelRefresh` (for those that requested a panel).
Other clients get output as lines of the log.
"""

from __future__ import annotations

import logging

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.events import Consent, FileStatus, Message, Output, Progress, Refresh, Status
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import notice
from jaxsight.lsp.documents.uris import uri_of
from jaxsight.lsp.features.diagnostics import Diagnostics
from jaxsight.lsp.features.panel import Panels
from jaxsight.lsp.features.panel_page.pages import PanelPages
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.notifications.progress import ProgressBars
from jaxsight.lsp.notifications.refresh import Refresher
from jaxsight.lsp.notifications.statuses import Statuses
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
        self._virtual_documents = virtual_documents
        self._panels = panels
        self._pages = pages
        self._statuses = statuses
        self._refresher = Refresher(context)
        self._progress_bars = ProgressBars(context)

    async def run(self) -> None:
        """Forward events for as long as the connection lasts."""
        context = self._context
        while True:
            match await context.session.events.get():
                case Refresh(path):
                    self._diagnostics.schedule(path)
                    self._refresher.refresh()
                    self._virtual_documents.refresh(path)
                    self._panels.refresh(path)
                    self._pages.refresh(path)
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

    async def _ask(self, consent: Consent) -> None:
        """Ask the user for consent.

        Any answer but the offered ones counts as none, and a client may leave the question open
        forever.
        """
        context = self._context
        params = types.ShowMessageRequestParams(
            type=types.MessageType.Warning,
            message=notice(consent.text),
            actions=[types.MessageActionItem(title=title) for title in consent.answers],
        )
        try:
            answer = await context.connection.window_show_message_request_async(params)
        except JsonRpcException as error:
            log.warning("client rejected a question to the user: %s", error)
            # Helix, for example, shows no questions: tell its users the command for the terminal.
            why = unasked(command(consent.folder, consent.what)).replace("this", "This", 1)
            context.show_message(types.MessageType.Warning, f"{consent.text} {why}.")
            return
        await context.session.decide(consent, answer.title if answer is not None else None)
