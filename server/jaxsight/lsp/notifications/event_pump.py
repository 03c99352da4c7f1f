"""Forward the engine's events: refreshes, statuses, output of user code, messages, progress.

Besides the standard's messages there are notifications of our own, for clients that support them:
`jaxsight/status` (sent to all clients, which ignore unknown notifications), `jaxsight/output` and
`jaxsight/textDocumentContentRefresh` (with `capabilities.experimental.jaxsight`), and
`jaxsight/panelRefresh` (for those that requested a panel).
Other clients get output as lines of the log.
"""

from __future__ import annotations

import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.events import Consent, Message, Output, Progress, Refresh, Status
from jaxsight.lsp.convert import notice
from jaxsight.lsp.documents.uris import uri_of
from jaxsight.text.inert import one_line, printed
from jaxsight.trust.decisions import in_terminal

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

log = logging.getLogger(__name__)

STATUS = "jaxsight/status"
OUTPUT = "jaxsight/output"

_KINDS = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
}


async def pump(server: JaxsightServer) -> None:
    """Forward events for as long as the connection lasts."""
    while True:
        match await server.session.events.get():
            case Refresh(path):
                server.publisher.schedule(path)
                server.refresher.refresh()
                server.contents.refresh(path)
                server.panels.refresh(path)
            case Status() as status:
                server.statuses.show(status)
            case Output(path, text):
                _output(server, path, text)
            case Message(level, text):
                server.tell_person(_KINDS[level], text)
            case Progress() as progress:
                server.progress_bars.show(progress)
            case Consent() as consent:
                server.background(_ask(server, consent), "asking for consent")


async def _ask(server: JaxsightServer, consent: Consent) -> None:
    """Ask the user for consent.

    Any answer but the offered ones counts as none, and a client may leave the question open
    forever.
    """
    params = types.ShowMessageRequestParams(
        type=types.MessageType.Warning,
        message=notice(consent.text),
        actions=[types.MessageActionItem(title=title) for title in consent.answers],
    )
    try:
        answer = await server.window_show_message_request_async(params)
    except JsonRpcException as error:
        log.warning("client rejected a question to the user: %s", error)
        # Helix, for example, shows no questions: tell its users the command for the terminal.
        command = in_terminal(consent.folder, consent.what)
        message = f"This editor cannot ask questions; to allow it, run `{command}` in a terminal."
        server.tell_person(types.MessageType.Warning, f"{consent.text} {message}")
        return
    await server.session.decide(consent, answer.title if answer is not None else None)


def _output(server: JaxsightServer, path: str, text: str) -> None:
    if server.client.knows_us:
        server.protocol.notify(OUTPUT, {"uri": uri_of(path), "text": printed(text)})
    else:
        server.tell_log(types.MessageType.Log, f"{one_line(path)}: {printed(text).rstrip()}")


class Statuses:
    """The last status of each root."""

    def __init__(self, server: JaxsightServer) -> None:
        self._server = server
        self.known: dict[str, dict[str, Any]] = {}
        self._logged: dict[str, tuple[types.MessageType, str]] = {}

    def show(self, status: Status) -> None:
        """Send a status to the client, and log it if it is ready, failed or untrusted."""
        shown = {name: notice(text) for name, text in asdict(status).items()}
        told = {**shown, "root": uri_of(status.root)}
        self.known[status.root] = told
        self._server.protocol.notify(STATUS, told)
        if status.state in ("failed", "untrusted"):
            kind = types.MessageType.Warning
        elif status.state == "ready":
            kind = types.MessageType.Info
        else:
            return
        facts = [status.detail, status.python, status.reason, status.jax and f"jax {status.jax}"]
        words = ", ".join(fact for fact in facts if fact)
        line = (
            kind,
            f"{one_line(status.root)}: {status.state}" + (f" ({one_line(words)})" if words else ""),
        )
        if self._logged.get(status.root) != line:
            self._logged[status.root] = line
            self._server.tell_log(*line)
