"""The tracer's main thread: it runs user code and answers.

User code runs in the main thread, where signal handlers work and where libraries expect to run;
`connection.py` reads in another one.
Every request is answered, even after an internal error; only a process that dies does not answer.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import re
import sys

from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.targets.own.plugins import plugins
from jaxsight.timeline import mark
from jaxsight.tracer.connection import Connection
from jaxsight.wire.messages.replies import VERSION, Failed, Hello
from jaxsight.wire.messages.requests import Request
from jaxsight.wire.observations import Failure

OLDEST_JAX = (0, 8)  # the `compat` modules name the private API of no older one

_REMEDY = (
    "Install JAX there, or choose another interpreter with the setting `jaxsight.python` "
    "(`python` under [tool.jaxsight] in pyproject.toml)."
)


def serve(incoming: int, outgoing: int) -> None:
    """Send the handshake, then answer requests until the server closes the pipe; never return."""
    mark("tracer started")
    connection = Connection(incoming, outgoing)
    hello = _greeting()
    connection.send(hello)
    if hello.problem:
        # All requests are answered with the reason why this environment cannot trace.
        failure = Failure(stage="start", type="ImportError", message=hello.problem)
        while True:
            message = connection.requests.get()
            if isinstance(message, Request):
                connection.send(Failed(message.id, failure))
    with cached_bytecode(file_for("tracer"), dataclasses):
        from jaxsight.tracer.dispatcher import Tracer

    Tracer(connection).run()


def _greeting() -> Hello:
    """Import JAX and return the handshake, without initializing a backend.

    This must never raise: an environment without a usable JAX is a valid answer.
    """
    # Tracing needs no device, and an editor must not take the accelerator from a running program.
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    version = platform.python_version()
    where = f"{sys.executable} (Python {version})"
    hello = Hello(version=VERSION, python=version, executable=sys.executable, pid=os.getpid())
    try:
        import jax
        import jaxlib
    except BaseException as error:  # noqa: BLE001 - incompatible versions may raise even SystemExit
        kind = "" if isinstance(error, ModuleNotFoundError) else f"{type(error).__name__}: "
        problem = f"importing jax failed in {where}: {kind}{error}"
        if isinstance(error, ModuleNotFoundError) and error.name in ("jax", "jaxlib"):
            problem = f"{where} has no {error.name}"
        return dataclasses.replace(hello, problem=f"{problem}. {_REMEDY}")
    jax_version: str = getattr(jax, "__version__", "")
    hello = dataclasses.replace(
        hello,
        jax=jax_version,
        jaxlib=getattr(jaxlib, "__version__", ""),
        plugins=plugins() if jax_version else (),
    )
    if tuple(int(part) for part in re.findall(r"\d+", jax_version)[:2]) < OLDEST_JAX:
        oldest = ".".join(map(str, OLDEST_JAX))
        problem = f"{where} has jax {jax_version or 'without a version'}; jaxsight "
        return dataclasses.replace(hello, problem=f"{problem}requires {oldest} or newer. {_REMEDY}")
    shown = str(jax.config.values["jax_platforms"] or "default")
    return dataclasses.replace(hello, platform=shown)
