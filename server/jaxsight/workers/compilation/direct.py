"""A compiler process for a caller that waits: the library's, and workers of datasets."""

from __future__ import annotations

import os
import subprocess
from types import TracebackType
from typing import Self

from jaxsight.wire import frames
from jaxsight.wire.messages.compiling import Compile, Compiled, NotCompiled, Ready
from jaxsight.workers.compilation import environments


class NoCompiler(Exception):
    """The process cannot compile, or has ended; the text says why."""


class DirectCompiler:
    """A compiler process of an environment, which ends with the context."""

    def __init__(self, environment: environments.CompilerEnvironment) -> None:
        self._frames = frames.FrameReader()
        own = environments.compiler_python(environment)
        self._process = subprocess.Popen(
            own.command,
            cwd=own.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**own.environment, **environments.compiler_variables(environment)},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        # Closes the pipes, and reaps the process.
        self._process.communicate()

    def compile(self, request: Compile) -> Compiled | NotCompiled:
        """Compile a program.

        Raises:
            NoCompiler: the process cannot, or ended.
        """
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            frames.write(process.stdin.fileno(), request)
        except frames.WireError as error:
            raise NoCompiler(str(error)) from error
        while data := os.read(process.stdout.fileno(), 1 << 20):
            for message in self._frames.feed(data):
                if isinstance(message, Compiled | NotCompiled):
                    return message
                if isinstance(message, Ready) and message.problem:
                    raise NoCompiler(message.problem)
        raise NoCompiler(f"the compiler exited with status {process.wait()}")
