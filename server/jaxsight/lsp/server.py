"""The process `jaxsight server`: its streams, its start and its end.

The first message, `initialize` or an announcement of it, has the folders and Python environments.
It is read before pygls and lsprotocol are imported, which takes most of the start: the tracer
starts meanwhile.
The process ends when the client requests it, when its stream ends or when its process has exited,
and never leaves a tracer running.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import importlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.lsp.configuration import Configuration
from jaxsight.lsp.transport.streams import (
    ANNOUNCE,
    ByteSink,
    JsonObject,
    Outbox,
    claim_stdio,
    introduction,
    read_descriptor,
    receive,
)
from jaxsight.text.inert import Formatter
from jaxsight.timeline import mark

if TYPE_CHECKING:
    import argparse

    from jaxsight.lsp.language_server import JaxsightServer
    from jaxsight.session import Session

log = logging.getLogger(__name__)

EngineFactory = Callable[["Configuration"], "EarlyEngine"]

_FROM_VSCODE = ("--trust", "editor")

_WATCH_INTERVAL = 2.0
"""Seconds between checks that the client's process is alive: a choice, each is one `kill(pid, 0)`.
Most clients close our stream when they exit; this is for those that were killed while another
process holds the stream open."""

_COLLECT = (5000, 5, 10)
"""Thresholds of `gc`, where Python 3.11 has 700, 10, 10: nearly all objects created at the start
stay alive, and scanning them takes time. Never collecting cost 8 MB, as attrs leaves the first
version of each class behind."""

_LAST_WORK = 1.0
"""Seconds for the engine to stop: with `_LAST_THREADS` and the streams' `_LAST_WORDS` less than the
two seconds after which clients kill a server (`stop(timeout = 2000)` of vscode-languageclient).
Guardians end its processes when this process has exited."""
_LAST_THREADS = 0.3
"""Seconds for threads to end."""


def main(
    argv: Sequence[str] | None = None,
    engine_factory: EngineFactory | None = None,
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
) -> int:
    """Run the server until the client is done, and return the exit status."""
    mark("server started")
    gc.set_threshold(*_COLLECT)
    arguments = list(sys.argv[1:] if argv is None else argv)
    to_stderr = logging.StreamHandler()
    to_stderr.setFormatter(Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[to_stderr])
    trust = ""
    # Editors pass one of these; importing argparse would delay the start.
    if arguments == list(_FROM_VSCODE):
        trust = _FROM_VSCODE[1]
    elif arguments not in ([], ["--stdio"]):
        trust = _parser().parse_args(arguments).trust
    factory = engine_factory or partial(EarlyEngine, trust=trust)
    incoming, outgoing = claim_stdio()
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        status = runner.run(_serve_stdio(incoming, outgoing, factory))
        last = threading.Timer(_LAST_THREADS, os._exit, [status])
        last.daemon = True
        last.start()
    # The reader thread may wait for input forever; Python would not wait for it, but C libraries
    # might.
    sys.stderr.flush()
    os._exit(status)


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the options, whose help is that of `cli/commands/server.py`."""
    import argparse

    parser = argparse.ArgumentParser("jaxsight server")
    parser.add_argument("--stdio", action="store_true")
    policies = ("ask", "opened", "always", "never", "editor")
    parser.add_argument("--trust", choices=policies, default="")
    return parser


class EarlyEngine:
    """An engine whose tracers start before the client gets the answer to `initialize`.

    They start while the server still imports its own modules. Only `projects` is imported for that;
    the rest takes as long again, and is imported after `initialize` has been answered.
    """

    def __init__(self, configuration: Configuration, trust: str = "") -> None:
        """Start tracers; `trust` is the policy that the server was started with, if any."""
        with cached_bytecode(file_for("projects"), dataclasses):
            from jaxsight.projects.projects import Projects
            from jaxsight.trust import Trust
        self._projects = Projects(Trust.of_user(trust))
        self._session: Session | None = None
        configuration.apply(self._projects)
        self._projects.prestart()

    def session(self) -> Session:
        """Import the rest of the engine, and return it with the tracers that have been started."""
        with cached_bytecode(file_for("session"), dataclasses):
            from jaxsight.session import Session
        self._session = Session(self._projects)
        return self._session

    async def aclose(self) -> None:
        """Stop everything that was started."""
        await (self._session or self._projects).aclose()


async def serve(
    source: asyncio.StreamReader,
    outbox: ByteSink,
    engine_factory: EngineFactory,
) -> int:
    """Serve one client over a pair of streams, and return the exit status of the protocol."""
    first = await introduction(source, outbox)
    if first is None:
        return 1
    configuration = _configuration(first)
    engine = engine_factory(configuration)
    try:
        await asyncio.to_thread(_import_server)
        while first["method"] == ANNOUNCE:
            first = await introduction(source, outbox)
            if first is None:
                return 1
            configuration = _configuration(first)
        return await _converse(first, source, outbox, engine, configuration)
    finally:
        try:
            await asyncio.wait_for(engine.aclose(), _LAST_WORK)
        except TimeoutError:
            log.info("the engine did not stop within %g s", _LAST_WORK)


def _configuration(message: Mapping[str, object]) -> Configuration:
    params = message.get("params")
    return Configuration(params if isinstance(params, Mapping) else {})


def _import_server() -> None:
    import attr._make

    with cached_bytecode(file_for("protocol"), attr._make, dataclasses):
        importlib.import_module("jaxsight.lsp.language_server")


async def _converse(
    first: dict[str, object],
    source: asyncio.StreamReader,
    outbox: ByteSink,
    engine: EarlyEngine,
    configuration: Configuration,
) -> int:
    from jaxsight.lsp.language_server import JaxsightServer

    server = JaxsightServer(engine.session, configuration)
    server.protocol.set_writer(outbox)
    # Watch before reading: the client's process may exit as soon as it gets an answer.
    watching = asyncio.ensure_future(_client_gone(configuration.client_process))
    reading = asyncio.ensure_future(_read(first, source, server))
    try:
        await asyncio.wait((reading, watching), return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            reading.result()
        return 1 if server.exit_code is None else server.exit_code
    finally:
        for task in (reading, watching):
            task.cancel()
        server.end_background()


async def _read(first: JsonObject, source: asyncio.StreamReader, server: JaxsightServer) -> None:
    """Handle messages, starting with `first`, until the server stops or the stream ends."""
    server.protocol.take(first)
    while server.exit_code is None and (body := await receive(source)) is not None:
        server.attend()
        server.protocol.receive(body)


async def _client_gone(process: int | None) -> None:
    """Return when the client's process has exited; never return if it cannot be observed."""
    if process is None or os.name == "nt" or not _alive(process):
        await asyncio.Event().wait()
        return
    while _alive(process):  # noqa: ASYNC110  # not a child process, so it can only be polled
        await asyncio.sleep(_WATCH_INTERVAL)
    log.warning("the client process %d has exited", process)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # of another user
    return True


async def _serve_stdio(incoming: int, outgoing: int, engine_factory: EngineFactory) -> int:
    loop = asyncio.get_running_loop()
    stream = read_descriptor(incoming, loop)

    def failed() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server stops anyway
            loop.call_soon_threadsafe(stream.feed_eof)

    outbox = Outbox(outgoing, failed)
    try:
        return await serve(stream, outbox, engine_factory)
    finally:
        outbox.close()


if __name__ == "__main__":
    sys.exit(main())
