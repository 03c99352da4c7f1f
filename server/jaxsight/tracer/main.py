"""The tracer's main thread: it runs user code and answers.

User code runs in the main thread, where signal handlers work and where libraries expect to run;
`connection.py` reads in another one.
Every request is answered, even after an internal error; only a process that dies does not answer.
"""

from __future__ import annotations

import dataclasses

from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.timeline import mark
from jaxsight.tracer.connection import Connection
from jaxsight.tracer.handshake import greet
from jaxsight.wire.messages.replies import Failed
from jaxsight.wire.messages.requests import Request
from jaxsight.wire.observations import Failure


def serve(incoming: int, outgoing: int) -> None:
    """Send the handshake, then answer requests until the server closes the pipe; never return."""
    mark("tracer started")
    connection = Connection(incoming, outgoing)
    hello = greet()
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
