"""The watchdog of the event loop: what it measures, whom it names, and how often it speaks."""

from __future__ import annotations

import asyncio
import time

import pytest

from jaxsight.lsp.loop_watch import LoopWatch, SlowTurns, Turn
from jaxsight.source.module import Module

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


def test_long_turns_are_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    turn = Turn(0.25, ("source.module.parse", "engine.session.open"))
    starting, log = SlowTurns(), SlowTurns(start=0)
    for _ in range(3):
        starting(turn)
        log(turn)
    assert [record.getMessage() for record in caplog.records] == [
        "the event loop was busy for 250 ms in source.module.parse < engine.session.open"
    ]
