"""`workspace/executeCommand`: commands run by lenses, and by users by name.

A file is given as its path or its URI.
A command that fails shows a message; it does not answer with an error.
"""

from __future__ import annotations

import logging
import sys
from asyncio import to_thread
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from jaxsight import __version__
from jaxsight.lsp.convert import notice
from jaxsight.lsp.documents.uris import KINDS, VIEW, Made
from jaxsight.lsp.features.virtual_documents import readable
from jaxsight.trust.decisions import COMMAND
from jaxsight.wire.messages.tracing import STYLES, TRANSFORMS
from jaxsight.workers.compiler_environments import ready

if TYPE_CHECKING:
    from jaxsight.lsp.language_server import JaxsightServer

log = logging.getLogger(__name__)

RESTART = "jaxsight.restart"
CHOOSE_SET = "jaxsight.chooseSet"
CHOOSE_TARGET = "jaxsight.chooseTarget"
SHOW = "jaxsight.show"
INFO = "jaxsight.info"
TRUST = COMMAND

_FIRST_SET = "(unnamed)"
"""How the question calls the example set that has no name."""


async def restart(server: JaxsightServer, arguments: tuple[object, ...]) -> None:
    """Replace the tracers of one root or of all (`jaxsight.restart [ROOT]`)."""
    match arguments:
        case ():
            await server.session.restart()
        case (str(root),):
            await server.session.restart(_path(server, root))
        case _:
            raise JsonRpcInvalidParams(f"{RESTART} takes at most a root folder")


async def choose_set(server: JaxsightServer, arguments: tuple[object, ...]) -> None:
    """Trace with other example inputs (`jaxsight.chooseSet FILE FUNCTION [SET]`).

    Without a set, the user is asked.
    """
    match arguments:
        case (str(file), str(function)):
            chosen = None
        case (str(file), str(function), str(chosen)):
            pass
        case _:
            raise JsonRpcInvalidParams(
                f"{CHOOSE_SET} takes a file, a function and optionally a set"
            )
    path = _path(server, file)
    if chosen is None:
        chosen = await _asked(server, function, server.session.sets(path, function))
    if chosen is not None:
        server.session.choose_set(path, function, chosen)


async def choose_target(server: JaxsightServer, arguments: tuple[object, ...]) -> None:
    """Show kernels for another target (`jaxsight.chooseTarget [TARGET]`).

    Without a target, the user is asked.
    """
    match arguments:
        case ():
            chosen = await _asked_target(server)
        case (str(chosen),):
            pass
        case _:
            raise JsonRpcInvalidParams(f"{CHOOSE_TARGET} takes at most a target")
    if chosen is not None:
        server.session.choose_target(chosen)


async def _asked_target(server: JaxsightServer) -> str | None:
    """Return the target that the user selects from those that are ready on this machine, if any."""
    titles = {notice(name): name for name in await to_thread(ready)}
    answer = await server.window_show_message_request_async(
        types.ShowMessageRequestParams(
            type=types.MessageType.Info,
            message="Select the target to show kernels for",
            actions=[types.MessageActionItem(title=title) for title in titles],
        )
    )
    return titles.get(answer.title) if answer is not None else None


async def _asked(server: JaxsightServer, function: str, sets: list[str]) -> str | None:
    """Return the example set that the user selects.

    Returns `None` if there are fewer than two, or if the user selects none.
    """
    if len(sets) < 2:
        return None
    titles = {notice(name) or _FIRST_SET: name for name in sets}
    answer = await server.window_show_message_request_async(
        types.ShowMessageRequestParams(
            type=types.MessageType.Info,
            message=notice(f"Select the example inputs to trace {function} with"),
            actions=[types.MessageActionItem(title=title) for title in titles],
        )
    )
    return titles.get(answer.title) if answer is not None else None


async def show(server: JaxsightServer, arguments: tuple[object, ...]) -> dict[str, Any]:
    """Show a generated document (`jaxsight.show FILE FUNCTION [KIND [TRANSFORM or INTERPRETER]]`).

    Returns its URI and text.
    Clients that can open documents are asked to open it, or a file with its text if they can open
    only files.
    """
    transform = ""
    match arguments:
        case (str(file), str(function)):
            kind = KINDS[0]
        case (str(file), str(function), str(kind)) if kind in KINDS and kind != VIEW:
            pass
        case (str(file), str(function), str(kind), str(transform)) if kind == VIEW or (
            kind in STYLES and transform in ("", *TRANSFORMS)
        ):
            pass
        case _:
            raise JsonRpcInvalidParams(
                f"{SHOW} takes a file, a function, one of {', '.join(KINDS)}, for source one "
                f"of {', '.join(TRANSFORMS)}, and for a view an interpreter"
            )
    made = Made(_path(server, file), function, kind, transform)
    shown = readable(await server.session.show(made.path, function, made.what), kind)
    uri = made.uri()
    if server.client.shows_documents:
        shows_made = server.client.asks_content or server.client.knows_us
        place = uri if shows_made else await server.contents.put_in_file(made, shown.text)
        params = types.ShowDocumentParams(uri=place, take_focus=True)
        try:
            await server.window_show_document_async(params)
        except JsonRpcException as error:
            log.warning("client failed to show %s: %s", place, error)
    return {"uri": uri, "text": shown.text}


async def trust(server: JaxsightServer, arguments: tuple[object, ...]) -> None:
    """Ask again for pending decisions of one folder or of all (`jaxsight.trust [FOLDER]`).

    The command itself decides nothing, because a link in a text may run it.
    It does not wait for the answer.
    """
    match arguments:
        case ():
            waits = server.session.ask_again()
        case (str(folder),):
            waits = server.session.ask_again(_path(server, folder))
        case _:
            raise JsonRpcInvalidParams(f"{TRUST} takes at most a folder")
    if not waits:
        server.tell_person(types.MessageType.Info, "No pending decisions.")


async def info(server: JaxsightServer, arguments: tuple[object, ...]) -> dict[str, Any]:
    """Return versions, roots and statuses, for bug reports and status pages (`jaxsight.info`)."""
    return {
        "version": __version__,
        "python": sys.version.split()[0],
        "client": server.client.name,
        "positionEncoding": server.documents.units.encoding,
        "diagnostics": "pull" if server.client.pulls_diagnostics else "push",
        "roots": server.configuration.roots,
        "trusted": server.configuration.trusted,
        "statuses": list(server.statuses.known.values()),
    }


def _path(server: JaxsightServer, file: str) -> str:
    return (
        server.documents.served(file) if "://" in file or file.startswith("untitled:") else None
    ) or file


Command = Callable[["JaxsightServer", tuple[object, ...]], Awaitable[Any]]
_COMMANDS: dict[str, Command] = {
    RESTART: restart,
    CHOOSE_SET: choose_set,
    CHOOSE_TARGET: choose_target,
    SHOW: show,
    TRUST: trust,
    INFO: info,
}


def register(server: JaxsightServer) -> None:
    """Serve the commands."""
    for name, command in _COMMANDS.items():
        server.command(name)(_handler(server, command))


def _handler(server: JaxsightServer, command: Command) -> Callable[..., Awaitable[Any]]:
    async def run(*arguments: Any) -> Any:
        try:
            return await command(server, arguments)
        except LookupError as error:
            server.tell_person(types.MessageType.Warning, str(error))
            return None

    return run
