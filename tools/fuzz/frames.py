"""Frames from tracers and compilers: bytes are messages or a `WireError`, and a process that sends
anything else costs itself, no more."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from random import Random

import psutil

from jaxsight.targets.target import parse
from jaxsight.wire import frames as wire
from jaxsight.wire import observations
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages import compiling as c
from jaxsight.wire.messages.replies import VERSION, Cancelled, Failed, Hello, Stage, Traced
from jaxsight.wire.messages.requests import NEW, Overlay, Trace
from jaxsight.workers.compilation.compilers import Compilers, Trouble
from jaxsight.workers.compilation.environments import CompilerEnvironment
from jaxsight.workers.limits import Limits
from jaxsight.workers.supervisor import Tracers
from tools.fuzz.pieces import mutated_bytes, mutated_json
from tools.fuzz.report import Failure, Report, pure

HOSTILE = Path(__file__).with_name("hostile_tracer.py")
PATIENCE = 120.0
MESSAGES: tuple[wire.Message, ...] = (
    Hello(VERSION, "3.11", "/usr/bin/python", jax="0.10.2", pid=7),
    Stage(3, "execute"),
    Traced(3, (), "", "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }", False, 0),
    Failed(3, observations.Failure("trace", "TypeError", "no\nway 😋")),
    Cancelled(9),
    Overlay("/x.py", "x = 1\n" * 20),
    Hello(c.COMPILER_VERSION, "3.11", "/usr/bin/python", jaxlib="0.10.2"),
    c.Compiled(4, "cpu", "d", Graph("m", ()), c.Memory(1, 2, 3, 4, 5), "HloModule", 0.5),
    c.NotCompiled(4, "program", "it is none"),
)


def draw(random: Random) -> bytes:
    frames = []
    for message in random.sample(MESSAGES, random.randrange(1, 5)):
        body = wire.encode(message)[wire.HEADER.size :]
        if random.random() < 0.5:
            data = wire._load(body.decode())
            body = wire._dump(mutated_json(data, random)).encode("utf-8", "surrogatepass")
        frames.append(wire.HEADER.pack(len(body)) + body)
    data = b"".join(frames)
    return mutated_bytes(data, random) if random.random() < 0.6 else data


def check(data: bytes) -> None:
    at_once = _read(data, len(data) + 1)
    assert _read(data, 1) == at_once, "pieces are read as something else"
    assert _read(data, 7) == at_once, "pieces are read as something else"


def _read(data: bytes, size: int) -> tuple[list[wire.Message], bool]:
    """The messages before an error, and whether there was one."""
    reader = wire.FrameReader()
    messages: list[wire.Message] = []
    try:
        for at in range(0, len(data), size):
            messages += reader.feed(data[at : at + size])
    except wire.WireError:
        return messages, True
    return messages, False


def run(count: int, seed: int) -> Report:
    report = pure(draw, check, count, seed)
    # A process takes as long as hundreds of these.
    asyncio.run(_processes(max(count // 50, 4), seed, report))
    return report


async def _processes(count: int, seed: int, report: Report) -> None:
    command = [sys.executable, "-S", str(HOSTILE)]
    limits = Limits(execute=1.0, inputs=1.0, trace=1.0)
    with tempfile.TemporaryDirectory(prefix="jaxsight-fuzz-") as folder:
        tracers = Tracers(sys.executable, folder, limits=limits, command=command)
        compilers = Compilers(
            memory=1 << 32, deadline=1.0, command=lambda environment: [*command, "compiler"]
        )
        for number in range(count):
            name = f"{seed}:{number}"
            for what, ask in (("tracers", _trace), ("compilers", _compile)):
                worker = tracers if what == "tracers" else compilers
                report.cases += 1
                report.count(what)
                try:
                    async with asyncio.timeout(PATIENCE):
                        await ask(worker, name)
                        answer = None
                        for _ in range(5):  # a busy machine may need more than a second
                            if isinstance(answer := await ask(worker, "sane"), Traced | c.Compiled):
                                break
                            if isinstance(worker, Tracers):
                                await worker.restart()  # as the message says, once it gave up
                        else:
                            report.failures.append(Failure(name, f"{what}: {answer}", "sane"))
                except TimeoutError:
                    report.failures.append(Failure(name, f"{what}: no answer", name))
        await tracers.aclose()
        await compilers.aclose()
    left = [
        each
        for each in psutil.Process().children(recursive=True)
        if HOSTILE.name in " ".join(each.cmdline())
    ]
    if left:
        report.failures.append(Failure(str(seed), f"{len(left)} processes are left", repr(left)))


async def _trace(tracers: object, seed: str) -> object:
    assert isinstance(tracers, Tracers)
    return await tracers.ask(Trace(NEW, f"{seed}.py", "m", "/", (), function=seed))


async def _compile(compilers: object, seed: str) -> c.Compiled | Trouble:
    assert isinstance(compilers, Compilers)
    environment = CompilerEnvironment("here", sys.executable, "0.10.2")
    return await compilers.compile(parse("cpu"), environment, c.Compile(0, "cpu", seed))
