"""The process of a compiler, which differs from a tracer's by its handshake."""

from __future__ import annotations

from jaxsight.wire.frames import Message
from jaxsight.wire.messages.compiling import COMPILER_VERSION, Ready
from jaxsight.wire.messages.replies import VERSION, Hello
from jaxsight.workers.process import TracerProcess
from jaxsight.workers.results import Death, Reason


class CompilerProcess(TracerProcess):
    """A compiler; its handshake is a `Ready`, of which `ready` has the common fields."""

    def _take_handshake(self, message: Message) -> None:
        if not isinstance(message, Ready):
            self.kill(Death(Reason.PROTOCOL, last_words="its first message is not a handshake"))
        elif self._check_version(message.version, COMPILER_VERSION):
            self.ready.set_result(
                Hello(
                    VERSION,
                    message.python,
                    message.executable,
                    jaxlib=message.jaxlib,
                    problem=message.problem,
                )
            )
            self.idle()
