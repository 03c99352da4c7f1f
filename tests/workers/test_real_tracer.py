"""The supervisor with the real tracer, in the interpreter of these tests and in another one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.results import Died, Reason, State
from jaxsight.workers.supervisor import Tracers
from tests.workers.sources import SANE, ask, sane_works

OTHER = os.environ.get("JAXSIGHT_OTHER_PYTHON", "")


@pytest.fixture(
    params=[
        pytest.param(sys.executable, id="same"),
        pytest.param(
            OTHER,
            id="other",
            marks=pytest.mark.skipif(not OTHER, reason="there is one Python only"),
        ),
    ]
)
async def tracers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Tracers]:
    made = Tracers(request.param, str(tmp_path))
    yield made
    await made.aclose()


async def stands_by(tracers: Tracers) -> None:
    async with asyncio.timeout(60):
        while not tracers.spare_ready:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_a_function_is_traced_in_the_chosen_interpreter(
    tracers: Tracers, request: pytest.FixtureRequest
) -> None:
    await sane_works(tracers)
    hello = tracers.status.hello
    assert hello is not None
    assert hello.executable == request.node.callspec.params["tracers"]
    assert hello.jax
    assert hello.platform == "cpu"


async def test_after_kill_9_the_spare_answers_the_same(tracers: Tracers) -> None:
    before = await ask(tracers, "a.py", SANE)
    assert isinstance(before, Traced)
    await stands_by(tracers)
    first, spare = tracers.pids
    os.kill(first, signal.SIGKILL)
    after = await ask(tracers, "a.py", SANE)
    assert isinstance(after, Traced)
    assert (after.jaxpr, after.observations) == (before.jaxpr, before.observations)
    assert tracers.pids[0] == spare


async def test_an_interpreter_without_jax_is_named_with_a_way_out(tmp_path: Path) -> None:
    others = set(psutil.Process().children(recursive=True))
    bare = tmp_path / "bare"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "venv", "--without-pip", str(bare)
    )
    await process.wait()
    python = str(bare / "bin" / "python")
    tracers = Tracers(python, str(tmp_path))
    died = await ask(tracers, "a.py", SANE)
    assert isinstance(died, Died)
    assert died.death.reason is Reason.UNAVAILABLE
    assert python in died.message
    assert "jaxsight.python" in died.message
    assert tracers.status.state is State.FAILED
    await tracers.aclose()
    assert set(psutil.Process().children(recursive=True)) <= others


async def test_a_thread_that_a_file_leaves_never_meets_another_file(tracers: Tracers) -> None:
    patches = """
import threading
import time
import jax
def patch():
    while True:
        jax.config.update("jax_enable_x64", True)
        time.sleep(0.001)
THREAD = threading.Thread(target=patch, daemon=True)
THREAD.start()
def f(x):
    return x
"""
    wide = "import jax.numpy as jnp\ndef f(x):\n    return x + jnp.zeros(3, 'float64')\n"
    for _ in range(3):
        assert isinstance(await ask(tracers, "patches.py", patches), Traced)
        await asyncio.sleep(0.05)
        answer = await ask(tracers, "wide.py", wide)
        assert isinstance(answer, Traced)
        assert "f64" not in answer.jaxpr
