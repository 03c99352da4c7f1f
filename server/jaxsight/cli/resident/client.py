"""Let the resident server run a command, and start it if there is none.

If that does not work for any reason, the command runs here: nobody may notice a server but by the
time that it saves.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from pathlib import Path

from jaxsight.cli.resident import endpoint

_STARTING, _ACCEPTING = 20.0, 2.0
"""Seconds until a server takes a command: a new one imports the commands first; one that runs
another command does not take it, and then it is quicker to run it here."""

_INTERRUPT = b"i"
ACCEPTED = b"accepted\n"
"""What a server says when it takes a command; then it gets the request, and says the exit status in
a byte. One that is busy says nothing, and one that is outdated closes the connection."""

_UNUSABLE, _INTERRUPTED = 2, 130


def run(arguments: list[str]) -> int | None:
    """Return the exit status of a command that a server ran; `None` if it has to run here."""
    if os.environ.get(endpoint.VARIABLE) == "no" or os.environ.get("CI"):
        return None
    if any(each == "-" or each.startswith("-:") for each in arguments) and os.isatty(0):
        return None  # a server would wait for what is typed, without hearing of an interruption
    if sys.platform not in ("linux", "darwin") or (path := endpoint.socket_path()) is None:
        return None
    try:
        connection = _accepted(path) or _accepted(path)  # the first one may have been outdated
        return _run_there(connection, arguments) if connection is not None else None
    except OSError:
        return None
    except KeyboardInterrupt:
        return _INTERRUPTED


def listening_socket(path: Path) -> socket.socket | None:
    """Return a new socket at a path for a server; `None` if one has it already.

    Raises:
        OSError: it cannot be created.
    """
    import fcntl

    lock = os.open(path.with_name("start.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # held for milliseconds
        try:
            _connection(path).close()
        except OSError:
            path.unlink(missing_ok=True)  # of a server that was killed
        else:
            return None
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen()
        return listener
    finally:
        os.close(lock)


def _connection(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_ACCEPTING)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def _accepted(path: Path) -> socket.socket | None:
    """Return a connection to a server that takes a command now; `None` if there is none.

    A client whose turn has not come must not have passed its streams: whoever reads them would
    wait for the server to close them.
    """
    patience = _ACCEPTING
    try:
        connection = _connection(path)
    except OSError:
        patience, listener = _STARTING, listening_socket(path)
        if listener is not None:  # else another command has just started it
            import subprocess

            from jaxsight.workers.own_python import resident

            with listener:
                own = resident(listener.fileno())
                subprocess.Popen(
                    own.command,
                    cwd=own.folder,
                    env=own.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(listener.fileno(),),
                    start_new_session=True,
                )
        connection = _connection(path)
    connection.settimeout(patience)
    if endpoint.is_own_peer(connection) and connection.recv(len(ACCEPTED)) == ACCEPTED:
        return connection
    connection.close()
    return None


def _run_there(connection: socket.socket, arguments: list[str]) -> int:
    """Return the exit status of a command that a server has accepted."""
    size = None
    for number in (2, 1, 0):  # the last one counts, as for Rich
        with contextlib.suppress(OSError):
            size = tuple(os.get_terminal_size(number))
    mask = os.umask(0o077)
    os.umask(mask)
    request = {
        "arguments": arguments,
        "folder": os.getcwd(),  # noqa: PTH109 - of text
        "variables": endpoint.variables_of_session(),
        "size": size,
        "umask": mask,
    }
    with connection:
        # Where one of them is closed, this fails, and the command runs here.
        socket.send_fds(connection, [json.dumps(request).encode() + b"\n"], (0, 1, 2))
        connection.settimeout(None)
        is_interrupted = False
        while True:
            try:
                status = connection.recv(1)
            except KeyboardInterrupt:
                if is_interrupted:
                    return _INTERRUPTED
                is_interrupted = True
                with contextlib.suppress(OSError):
                    connection.send(_INTERRUPT)
                connection.settimeout(_ACCEPTING)
            except OSError:
                status = b""
                break
            else:
                break
    if status or is_interrupted:
        return status[0] if status else _INTERRUPTED
    from jaxsight.cli.output.printing import Printer

    text = "the server for commands ended; run the command again"
    Printer(stderr=True).labelled("error", "bold red", text)
    return _UNUSABLE
