"""The watchdog of the event loop: what it measures, and whom it names."""

from __future__ import annotations

import asyncio
import time

from jaxsight.source.module import Module
from tools.perf.loop_watch import LoopWatch, Turn

STATEMENTS = "".join(f"def f{n}(x):\n    return x + {n}\n" for n in range(3_000))


async def read() -> None:
    Module.parse(STATEMENTS)


async def wait() -> None:
    time.sleep(0.3)  # noqa: ASYNC251  # a turn that waits for something costs no processor time
    await asyncio.sleep(0.01)


def watched(work: object, limit: float) -> list[Turn]:
    turns: list[Turn] = []
    with asyncio.Runner(loop_factory=LoopWatch(turns.append, limit).loop) as runner:
        runner.run(work)  # type: ignore[arg-type]
    return turns


def test_a_turn_that_computes_for_long_is_reported_with_what_ran() -> None:
    turns = watched(read(), 0.02)
    assert turns
    assert turns[0].seconds > 0.02
    assert "source.module.parse" in turns[0].where


def test_a_turn_that_waits_is_not_long() -> None:
    assert watched(wait(), 0.2) == []


def test_the_loop_of_a_server_serves_processes_and_threads_as_any_other() -> None:
    async def work() -> None:
        process = await asyncio.create_subprocess_exec("true")
        assert await process.wait() == 0
        assert await asyncio.to_thread(len, "abc") == 3

    assert watched(work(), 10.0) == []
