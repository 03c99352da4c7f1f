"""Compilers may crash, hang, eat memory and be given up; the caller always gets an answer."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from jaxsight.files.ownership import WRITABLE
from jaxsight.targets.target import parse
from jaxsight.wire.messages.compiling import Compile, Compiled, Folding
from jaxsight.workers.compilation.compilers import Compilers, Trouble
from jaxsight.workers.compilation.environments import CompilerEnvironment
from jaxsight.workers.request_queue import Priority

FAKE = Path(__file__).with_name("fake_compiler.py")
HERE = CompilerEnvironment("here", sys.executable, "0.10.2")
CPU = parse("cpu")


class Lab:
    def __init__(self, folder: Path, *, deadline: float = 600.0, folding: float = 600.0) -> None:
        self.log = folder / "log"
        self.compilers = Compilers(
            memory=400 * 2**20,
            deadline=deadline,
            folding=folding,
            command=lambda each: [each.python, str(FAKE), str(self.log)],
        )

    async def compile(
        self,
        program: str,
        target: str = "cpu",
        *,
        complete: bool = True,
        urgency: Priority = Priority.PERSON,
    ) -> Compiled | Trouble:
        request = Compile(0, target, program, complete=complete)
        return await self.compilers.compile(parse(target), HERE, request, urgency)

    async def fold(self, program: str) -> tuple[Folding, Compiled | None] | Trouble:
        return await self.compilers.folding(CPU, HERE, Compile(0, "cpu", program))

    @property
    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture(autouse=True)
def writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the confined compiler write its log."""
    monkeypatch.setenv(WRITABLE, str(tmp_path))


@pytest_asyncio.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    made = Lab(tmp_path)
    yield made
    await made.compilers.aclose()


async def test_programs_are_compiled_one_after_another(lab: Lab) -> None:
    found = await asyncio.gather(*(lab.compile(f"p{index}") for index in range(4)))
    assert [each.graph.module for each in found if isinstance(each, Compiled)] == [
        "p0",
        "p1",
        "p2",
        "p3",
    ]
    assert lab.compilers.compiled == 4


async def test_a_refusal_is_told_in_the_compilers_words(lab: Lab) -> None:
    found = await lab.compile("refuse")
    assert found == Trouble("xla", "no such operation")


async def test_a_crash_is_tried_once_more(lab: Lab) -> None:
    assert isinstance(await lab.compile("crash once"), Compiled)
    assert lab.asked == ["crash once", "crash once"]


async def test_a_crash_that_comes_again_is_told_and_the_next_program_works(lab: Lab) -> None:
    found = await lab.compile("crash")
    assert isinstance(found, Trouble)
    assert "crashed the compiler twice (SIGABRT" in found.message
    assert isinstance(await lab.compile("fine"), Compiled)


async def test_a_compile_has_a_deadline(tmp_path: Path) -> None:
    lab = Lab(tmp_path, deadline=0.3)
    found = await lab.compile("hang")
    assert found == Trouble(
        "time", "it does not compile in 0.3 s (setting `timeouts.compile`)", seconds=0.3
    )
    await lab.compilers.aclose()


@pytest.mark.skipif(os.name != "posix", reason="memory is watched on POSIX alone")
async def test_memory_has_a_limit(lab: Lab) -> None:
    found = await lab.compile("eat")
    assert isinstance(found, Trouble)
    assert "limit 400 MiB (setting `memoryLimit`)" in found.message
    assert isinstance(await lab.compile("fine"), Compiled)


async def test_a_compile_that_nobody_waits_for_is_ended(lab: Lab) -> None:
    waiting = asyncio.ensure_future(lab.compile("hang"))
    while not lab.asked:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert isinstance(await lab.compile("fine"), Compiled)


async def started(lab: Lab, *programs: str) -> None:
    while not set(programs) <= set(lab.asked):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_giving_up_while_waiting_leaves_the_running_compile_alone(lab: Lab) -> None:
    running = asyncio.ensure_future(lab.compile("slow"))
    await started(lab, "slow")
    waiting = asyncio.ensure_future(lab.compile("never"))
    await asyncio.sleep(0)
    waiting.cancel()
    assert isinstance(await running, Compiled)
    assert isinstance(await lab.compile("fine"), Compiled)
    assert lab.asked == ["slow", "fine"]


async def test_the_most_urgent_program_is_compiled_next(lab: Lab) -> None:
    running = asyncio.ensure_future(lab.compile("slow"))
    await started(lab, "slow")
    waiting = [
        asyncio.ensure_future(lab.compile(name, urgency=urgency))
        for name, urgency in (
            ("unseen", Priority.BACKGROUND),
            ("seen", Priority.SCREEN),
            ("asked", Priority.PERSON),
            ("seen too", Priority.SCREEN),
        )
    ]
    await asyncio.gather(running, *waiting)
    assert lab.asked == ["slow", "asked", "seen", "seen too", "unseen"]


async def test_kernels_do_not_wait_for_a_complete_compile(lab: Lab) -> None:
    complete = asyncio.ensure_future(lab.compile("hang"))
    await started(lab, "hang")
    early = await lab.compile("fine", complete=False)
    assert isinstance(early, Compiled)
    assert not early.is_complete
    complete.cancel()
    with pytest.raises(asyncio.CancelledError):
        await complete


async def test_without_an_early_end_one_process_compiles_everything(lab: Lab) -> None:
    old = replace(HERE, jax="0.9.0")
    early = asyncio.ensure_future(
        lab.compilers.compile(CPU, old, Compile(0, "cpu", "slow", complete=False))
    )
    await started(lab, "slow")
    await lab.compilers.compile(CPU, old, Compile(0, "cpu", "fine"))
    assert early.done()
    assert len(psutil.Process().children()) == 1


async def test_targets_have_processes_of_their_own(lab: Lab) -> None:
    hanging = asyncio.ensure_future(lab.compile("slow", "cpu"))
    assert isinstance(await lab.compile("fine", "cuda:h100"), Compiled)
    assert isinstance(await hanging, Compiled)


async def test_nothing_runs_after_the_end(lab: Lab) -> None:
    before = set(psutil.Process().children(recursive=True))
    waiting = asyncio.create_task(lab.compile("hang"))
    while not lab.asked:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await lab.compilers.aclose()
    assert isinstance(await waiting, Trouble)
    assert isinstance(await lab.compile("fine"), Trouble)
    assert set(psutil.Process().children(recursive=True)) <= before


async def test_folding_is_measured_after_a_compile_without_it(lab: Lab) -> None:
    measured = await lab.fold("fine")
    assert not isinstance(measured, Trouble)
    assert measured[0] == Folding(0.1, 0.1)
    assert isinstance(measured[1], Compiled)
    assert lab.asked == ["fine"] * 3


async def test_a_fold_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    lab = Lab(tmp_path, folding=0.5)
    assert await lab.fold("folds") == (Folding(0.5, 0.1, is_ended=True), None)
    await lab.compilers.aclose()


@pytest.mark.parametrize("program", ["crash", "refuse"])
async def test_what_cannot_be_compiled_is_not_measured(lab: Lab, program: str) -> None:
    assert isinstance(await lab.fold(program), Trouble)


async def test_folding_is_measured_beside_what_is_compiled(lab: Lab) -> None:
    measuring = asyncio.ensure_future(lab.fold("folds"))
    while lab.asked != ["folds"] * 3:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert isinstance(await lab.compile("fine"), Compiled)
    measuring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await measuring
    assert isinstance(await lab.fold("fine"), tuple)
