"""What the engine tells unasked, passed on: refreshes, statuses, output of user code, messages, progress.

Besides the standard's own means there are notifications of ours, for clients that know them: `jaxsight/status` (sent to all:
unknown ones are ignored), where `capabilities.experimental.jaxsight` is set `jaxsight/output` and
`jaxsight/textDocumentContentRefresh`, and `jaxsight/panelRefresh` to those that asked for a panel. To the others output is a line of the log.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from jaxsight.engine.events import Message, Output, Progress, Refresh, Status
from jaxsight.lsp.uris import uri_of

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

STATUS = "jaxsight/status"
OUTPUT = "jaxsight/output"

_KINDS = {
    "error": types.MessageType.Error,
    "warning": types.MessageType.Warning,
    "info": types.MessageType.Info,
}


async def pump(server: JaxsightServer) -> None:
    """Pass on events for as long as the connection lasts."""
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
                params = types.ShowMessageParams(type=_KINDS[level], message=text)
                server.window_show_message(params)
            case Progress() as progress:
                server.progress_bars.show(progress)


def _output(server: JaxsightServer, path: str, text: str) -> None:
    if server.client.knows_us:
        server.protocol.notify(OUTPUT, {"uri": uri_of(path), "text": text})
    else:
        server.tell_log(types.MessageType.Log, f"{path}: {text.rstrip()}")


class Statuses:
    """The last status of each root."""

    def __init__(self, server: JaxsightServer) -> None:
        self._server = server
        self.known: dict[str, dict[str, Any]] = {}
        self._logged: dict[str, tuple[types.MessageType, str]] = {}

    def show(self, status: Status) -> None:
        """Tell the client, and its log whatever is not everyday."""
        told = {**asdict(status), "root": uri_of(status.root)}
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
        line = kind, f"{status.root}: {status.state}" + (f" ({words})" if words else "")
        if self._logged.get(status.root) != line:
            self._logged[status.root] = line
            self._server.tell_log(*line)
