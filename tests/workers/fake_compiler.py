"""A compiler without XLA, that does what the program of a request says. Run as a script."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "server"))

from jaxsight.wire import frames as wire
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import (
    COMPILER_VERSION,
    Compile,
    Compiled,
    Memory,
    NotCompiled,
)
from jaxsight.wire.messages.replies import Hello
from jaxsight.wire.messages.requests import Cancel


def main(log: Path) -> None:
    wire.write(1, Hello(COMPILER_VERSION, "3.11", sys.executable, jaxlib="0.10.2", pid=os.getpid()))
    reader = wire.FrameReader()
    memory: list[bytes] = []
    while data := os.read(0, 65536):
        for message in reader.feed(data):
            if isinstance(message, Cancel):
                continue
            assert isinstance(message, Compile)
            with log.open("a") as file:
                file.write(message.program + "\n")
            match message.program:
                case "crash":
                    os.abort()
                case "crash once" if log.read_text().count("crash once") == 1:
                    os.abort()
                case "hang":
                    time.sleep(1000)
                case "folds" if not message.options:
                    time.sleep(1000)
                case "slow":
                    time.sleep(0.5)
                case "eat":
                    while True:
                        memory.append(bytearray(os.urandom(1 << 20)) * 16)
                case "refuse":
                    wire.write(1, NotCompiled(message.id, "xla", "no such operation"))
                    continue
            graph = Graph(message.program, ())
            sizes = Memory(0, 0, 0, 0, 0) if message.complete else Memory()
            answer = Compiled(message.id, message.target, "device", graph, sizes, "", 0.1)
            wire.write(1, replace(answer, is_complete=message.complete))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
