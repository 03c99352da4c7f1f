"""A tracer, or a compiler with `compiler`, that answers with spoiled frames. Run as a script; a
request's text is the seed of what it does."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from random import Random

TOP = Path(__file__).parents[2]
sys.path[:0] = [str(TOP / "server"), str(TOP)]

from jaxsight.wire import frames as wire
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages import compiling as c
from jaxsight.wire.messages.replies import VERSION, Hello, Stage, Traced
from jaxsight.wire.messages.requests import Trace
from tools.fuzz.pieces import mutated_bytes

SANE = "sane"


def main(compiler: bool) -> None:
    incoming, outgoing = os.dup(0), os.dup(1)
    os.dup2(2, 1)
    python = sys.version.split()[0]
    hello = (
        Hello(c.COMPILER_VERSION, python, sys.executable, jaxlib="0.10.2")
        if compiler
        else Hello(VERSION, python, sys.executable, jax="0.10.2", pid=os.getpid())
    )
    wire.write(outgoing, hello)
    reader = wire.FrameReader()
    while data := os.read(incoming, 65536):
        for message in reader.feed(data):
            match message:
                case Trace(id=id, function=seed):
                    answer: wire.Message = Traced(id, (), "", "{ }", False, 0)
                    _say(outgoing, [Stage(id, "execute"), answer], seed)
                case c.Compile(id=id, program=seed):
                    graph = Graph("jit_f", ())
                    answer = c.Compiled(id, "cpu", "", graph, c.Memory(0, 0, 0, 0, 0), "", 0.1)
                    _say(outgoing, [answer], seed)


def _say(outgoing: int, messages: list[wire.Message], seed: str) -> None:
    data = b"".join(map(wire.encode, messages))
    if seed == SANE:
        os.write(outgoing, data)
        return
    random = Random(seed)
    spoiled = mutated_bytes(data, random)
    if random.random() < 0.2:
        spoiled = random.randbytes(random.randrange(100_000))
    while spoiled:
        size = random.choice((1, 3, 4, 5, 100_000))
        spoiled = spoiled[os.write(outgoing, spoiled[:size]) :]
    match random.randrange(5):
        case 0:
            os._exit(random.choice((0, 1, 255)))
        case 1:
            os.close(outgoing)
        case 2:
            os.write(2, random.randbytes(10_000))
        case 3:
            time.sleep(random.random() / 10)
            os.write(outgoing, b"\0\0\0\5{}")


if __name__ == "__main__":
    main("compiler" in sys.argv)
