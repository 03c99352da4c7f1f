"""A compiler process for a caller that waits: the library's, and workers of datasets."""

from __future__ import annotations

from dataclasses import replace

from jaxsight.wire import frames
from jaxsight.wire.messages.compiling import Compile, Compiled, NotCompiled, Ready
from jaxsight.workers.child import ChildProcess
from jaxsight.workers.compilation import environments


class NoCompiler(Exception):
    """The process cannot compile, or has ended; the text says why."""


class DirectCompiler(ChildProcess):
    """A compiler process of an environment, which ends with the context."""

    def __init__(self, environment: environments.CompilerEnvironment) -> None:
        self._frames = frames.FrameReader()
        own = environments.compiler_python(environment)
        variables = {**own.environment, **environments.compiler_variables(environment)}
        super().__init__(replace(own, environment=variables))

    def compile(self, request: Compile) -> Compiled | NotCompiled:
        """Compile a program.

        Raises:
            NoCompiler: the process cannot, or ended.
        """
        try:
            frames.write(self.requests, request)
        except frames.WireError as error:
            raise NoCompiler(str(error)) from error
        while data := self.read():
            for message in self._frames.feed(data):
                if isinstance(message, Compiled | NotCompiled):
                    return message
                if isinstance(message, Ready) and message.problem:
                    raise NoCompiler(message.problem)
        raise NoCompiler(f"the compiler exited with status {self.status()}")
