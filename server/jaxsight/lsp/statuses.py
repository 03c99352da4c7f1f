"""What status bars show.

`jaxsight/status` says what the tracers of each root do, which is logged, too.
`jaxsight/fileStatus` says what a file is compiled for, and how many of its functions are traced.
"""

from __future__ import annotations

import re
from dataclasses import asdict

from lsprotocol import types

from jaxsight.events import FileStatus, Status
from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.convert import inert
from jaxsight.lsp.documents.uris import uri_of
from jaxsight.text.inert import one_line

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
        if status.state in ("failed", "untrusted"):
            kind = types.MessageType.Warning
        elif status.state == "ready":
            kind = types.MessageType.Info
        else:
            return
        line = (kind, _line(status))
        if self._logged.get(status.root) != line:
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
    details = ", ".join(fact for fact in facts if fact)
    line = f"{one_line(status.root)}: {status.state}"
    return f"{line} ({one_line(details)})" if details else line
