"""User code that misbehaves: one clear message, at most one tracer lost, and the next function of a
sane file is traced.

All cases meet the same tracers, one after the other, as they would in an editor.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from jaxsight.text.units import GIB, MIB
from jaxsight.wire.messages.replies import Failed, Traced
from jaxsight.workers.limits import Limits
from jaxsight.workers.results import Died, Reason, TracerOutput
from jaxsight.workers.supervisor import Tracers
from tests.workers.sources import ask, sane_works, trace

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

LIMITS = Limits(execute=600.0, inputs=600.0, trace=600.0, memory=2 * GIB)
HASTY = Limits(execute=4.0, inputs=4.0, trace=4.0, memory=2 * GIB)
"""For what never ends; all else may take as long as the machine needs."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def all_tracers(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[dict[Limits, Tracers]]:
    project = str(tmp_path_factory.mktemp("project"))
    made = {limits: Tracers(sys.executable, project, limits=limits) for limits in (LIMITS, HASTY)}
    yield made
    for each in made.values():
        await each.aclose()
    assert [child for child in psutil.Process().children(recursive=True) if alive(child)] == []


@pytest.fixture
def tracers(all_tracers: dict[Limits, Tracers]) -> Tracers:
    return all_tracers[LIMITS]


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@dataclass(frozen=True)
class Case:
    """Source, and either the reason of the death or the type of the exception; the message; the
    stage.
    """

    name: str
    source: str
    ends: Reason | str
    says: str = ""
    stage: str = "execute"


CASES = [
    Case(
        "os._exit in the module",
        "import os\nos._exit(3)\ndef f(x): return x",
        Reason.EXITED,
        "executing `os._exit(3)` exited the process with status 3",
    ),
    Case(
        "os._exit in the function",
        "import os\ndef f(x): os._exit(0)",
        Reason.EXITED,
        "tracing the function exited the process with status 0",
        "trace",
    ),
    Case("sys.exit", "import sys\nsys.exit('bye')\ndef f(x): return x", "SystemExit", "bye"),
    Case("KeyboardInterrupt", "raise KeyboardInterrupt\ndef f(x): return x", "KeyboardInterrupt"),
    Case(
        "a segfault",
        "import ctypes\nctypes.string_at(0)\ndef f(x): return x",
        Reason.CRASHED,
        "executing `ctypes.string_at(0)` crashed the process (SIGSEGV, segmentation fault)",
    ),
    Case(
        "a loop in the module",
        "while True:\n    pass\ndef f(x): return x",
        Reason.TIMEOUT,
        "executing `while True:` took longer than 4 s",
    ),
    Case(
        "a loop in the function",
        "def f(x):\n    while True:\n        pass",
        Reason.TIMEOUT,
        "tracing the function took longer than 4 s",
        "trace",
    ),
    Case(
        "a loop in __repr__",
        "class R:\n    def __repr__(self):\n        while True:\n            pass\ndef f(x): raise ValueError(R())",
        Reason.TIMEOUT,
        "tracing the function took longer than 4 s",
        "trace",
    ),
    Case("recursion", "def f(x): return f(x)", "RecursionError", "recursion", "trace"),
    Case(
        "an exception without a text",
        "class E(Exception):\n    def __str__(self): raise self\n    __repr__ = __str__\n"
        "raise E\ndef f(x): return x",
        "E",
    ),
    Case(
        "a bounded fork bomb",
        "import os, time\nfor _ in range(6):\n    os.fork()\ntime.sleep(1000)\ndef f(x): return x",
        Reason.TIMEOUT,
    ),
    Case(
        "a daemon",
        "import os, time\nif not os.fork():\n    os.setsid()\n    if not os.fork():\n        time.sleep(1000)\n"
        "    os._exit(0)\nos._exit(4)\ndef f(x): return x",
        Reason.EXITED,
        "status 4",
    ),
    Case(
        "noise on all descriptors",
        "import os\nfor each in range(3, 400):\n    try:\n        os.write(each, b'noise')\n"
        "    except OSError:\n        pass\nimport time\ntime.sleep(1000)\ndef f(x): return x",
        Reason.PROTOCOL,
    ),
    Case("reading stdin", "input()\ndef f(x): return x", "EOFError", "EOF"),
    Case(
        "signals ignored",
        "import signal\nfor each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):\n"
        "    signal.signal(each, signal.SIG_IGN)\nwhile True: pass\ndef f(x): return x",
        Reason.TIMEOUT,
    ),
    Case("its group killed", "import os\nos.killpg(0, 9)\ndef f(x): return x", Reason.CRASHED, "SIGKILL"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_what_goes_wrong_is_said_and_the_next_request_works(
    all_tracers: dict[Limits, Tracers], case: Case
) -> None:
    tracers = all_tracers[HASTY if case.ends is Reason.TIMEOUT else LIMITS]
    outcome = await ask(tracers, f"{case.name.replace(' ', '_')}.py", case.source)
    match case.ends, outcome:
        case Reason() as reason, Died():
            assert (outcome.death.reason, outcome.stage) == (reason, case.stage), outcome
            assert case.says in outcome.message
        case str() as exception, Failed(failure=failure):
            assert failure.type.rpartition(".")[2] == exception
            assert failure.stage == case.stage
            assert case.says in failure.message
        case _:
            pytest.fail(f"{outcome}")
    await sane_works(tracers)


async def test_30_gb_piece_by_piece_end_the_process_at_the_limit(tmp_path: Path) -> None:
    limits = Limits(execute=600.0, memory=600 * MIB)  # touching memory may be slow
    tracers = Tracers(sys.executable, str(tmp_path), limits=limits, spare=False)
    source = "import numpy\na = [numpy.ones(2**21) for _ in range(30 * 2**6)]\ndef f(x): return x"
    died = await ask(tracers, "pieces.py", source)
    assert isinstance(died, Died)
    assert died.death.reason is Reason.MEMORY
    assert died.message.startswith("executing `a = [numpy.ones(2 ** 21)")
    assert " used " in died.message
    assert died.message.endswith(" of memory, limit 600 MiB")
    await sane_works(tracers)
    await tracers.aclose()


async def test_30_gb_at_once_are_refused_or_end_the_process(tracers: Tracers) -> None:
    source = "import numpy\na = numpy.ones(30 * 2**30 // 8)\ndef f(x): return x"
    match await ask(tracers, "at_once.py", source):
        case Failed(failure=failure):  # the machine has not that much
            assert "MemoryError" in failure.bases
        case Died(death=death):
            assert death.reason is Reason.MEMORY
        case answer:
            pytest.fail(f"{answer}")
    await sane_works(tracers)


async def test_all_descriptors_closed_cost_the_process(tracers: Tracers) -> None:
    source = "import os\nos.closerange(0, 5000)\ndef f(x): return x"
    outcome = await ask(tracers, "closes.py", source)
    assert isinstance(outcome, Died)
    assert outcome.stage == "execute"
    assert outcome.death.reason in (Reason.EXITED, Reason.PROTOCOL)
    await sane_works(tracers)


HARMLESS = {
    "a process that stops itself": (
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\ndef f(x): return x"
    ),
    "descriptors 0 to 2 closed": "import os\nfor each in (0, 1, 2):\n    os.close(each)\ndef f(x): return x",
    "threads that never end": (
        "import threading, time\ndef spin():\n    while True: pass\n"
        "for target in (spin, lambda: time.sleep(1e6)):\n    threading.Thread(target=target).start()\n"
        "def f(x): return x"
    ),
    "signal handlers": (
        "import signal\ndef handler(*_): raise RuntimeError('handled')\n"
        "for each in (signal.SIGALRM, signal.SIGCHLD, signal.SIGPIPE):\n    signal.signal(each, handler)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\ndef f(x): return x"
    ),
    "builtins replaced": (
        "import builtins\n"
        "for each in ('print', 'len', 'isinstance', 'getattr', 'open', 'type', 'repr', 'hash', 'id', 'map'):\n"
        "    setattr(builtins, each, None)\ndef f(x): return x"
    ),
    "jax.jit replaced": (
        "import jax\nimport jax.numpy as jnp\njax.jit = jax.make_jaxpr = None\njax.ShapeDtypeStruct = int\n"
        "jnp.sin = lambda x: x\ndef f(x): return x"
    ),
    "json and os replaced": (
        "import json, os, time\njson.dumps = json.loads = None\njson.JSONEncoder.encode = None\n"
        "os.write = os.read = None\ntime.monotonic = time.perf_counter = None\ndef f(x): return x"
    ),
    "standard streams replaced": (
        "import sys\nsys.stdout = sys.stderr = sys.stdin = None\nsys.__stdout__ = None\ndef f(x): return x"
    ),
    "tracing and profiling hooks": (
        "import sys, threading\ndef hook(*_): raise RuntimeError('hook')\n"
        "def late():\n    sys.settrace(hook); sys.setprofile(hook); threading.settrace(hook)\n"
        "def f(x):\n    late()\n    return x"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
async def test_what_is_broken_in_the_process_does_not_reach_the_next_file(
    tracers: Tracers, name: str
) -> None:
    await ask(tracers, f"{name.replace(' ', '_')}.py", HARMLESS[name])
    await sane_works(tracers)


async def test_100_mb_of_output_are_cut(tracers: Tracers) -> None:
    source = "for _ in range(100):\n    print('x' * 2**20)\ndef f(x): return x"
    assert isinstance(await ask(tracers, "loud.py", source), Traced)
    texts = []
    while not tracers.events.empty():
        match tracers.events.get_nowait():
            case TracerOutput(file="/project/loud.py", text=text):
                texts.append(text)
    assert sum(map(len, texts)) < LIMITS.output + 1000
    assert texts[-1].endswith(f"… output truncated after {LIMITS.output} bytes\n")
    await sane_works(tracers)


async def test_a_request_is_cancelled_in_the_middle_of_user_code(tracers: Tracers) -> None:
    await sane_works(tracers)
    before = tracers.pids[0]
    tracing = asyncio.Event()
    loop = "def f(x):\n    while True:\n        y = x + 1\n    return y"
    request = asyncio.create_task(
        tracers.ask(
            trace(tracers, "endless.py", loop),
            on_stage=lambda stage: tracing.set() if stage.stage == "trace" else None,
        )
    )
    await tracing.wait()
    request.cancel()
    await sane_works(tracers)
    assert tracers.pids[0] == before


async def test_its_parent_is_not_killed(tracers: Tracers) -> None:
    source = "import os\nos.kill(os.getppid(), 9)\ndef f(x): return x"
    traced = await ask(tracers, "parent.py", source)
    assert isinstance(traced, Traced)
    assert "did not run: it would change something outside" in traced.caveats[0].reason
