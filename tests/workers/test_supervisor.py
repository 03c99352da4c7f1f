"""The supervisor: requests get answers, whatever becomes of the process that is to give them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from jaxsight.text.units import MIB
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.messages.replies import Failed, Listing, Traced
from jaxsight.wire.messages.requests import NEW, Show, Trace
from jaxsight.workers.limits import Limits
from jaxsight.workers.request_queue import Haste
from jaxsight.workers.results import (
    Died,
    Outcome,
    Reason,
    Replaced,
    State,
    TracerOutput,
    TracerStatus,
)
from jaxsight.workers.supervisor import Priority, Tracers

FAKE = Path(__file__).with_name("fake_tracer.py")
PATIENCE = 120
"""Seconds after which what does not happen is taken to never happen."""
Make = Callable[..., Tracers]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    made: list[Tracers] = []

    def make_one(mode: str = "", **options: Any) -> Tracers:
        tracers = Tracers(
            sys.executable,
            str(tmp_path),
            command=[sys.executable, "-S", str(FAKE), mode],
            **options,
        )
        made.append(tracers)
        return tracers

    yield make_one
    for each in made:
        await each.aclose()
    assert [
        child for child in psutil.Process().children(recursive=True) if child.is_running()
    ] == []


def trace(tracers: Tracers, function: str, file: str = "a.py") -> Trace:
    return Trace(NEW, file, "a", "", (), function=function)


async def ask(tracers: Tracers, function: str, file: str = "a.py", **options: Any) -> Outcome:
    return await tracers.ask(trace(tracers, function, file), **options)


async def pid_of(tracers: Tracers) -> int:
    answer = await ask(tracers, "answer", "sane.py")
    assert isinstance(answer, Traced)
    return int(answer.jaxpr)


async def death_of(tracers: Tracers, function: str) -> Died:
    outcome = await ask(tracers, function)
    assert isinstance(outcome, Died)
    await pid_of(tracers)
    return outcome


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what has no event to wait for: other processes' states."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def warm(tracers: Tracers) -> tuple[int, int]:
    """Wait for the spare; the pids of both."""
    await pid_of(tracers)
    await until(lambda: tracers.spare_ready)
    first, spare = tracers.pids
    return first, spare


def events(tracers: Tracers) -> list[object]:
    found = []
    while not tracers.events.empty():
        found.append(tracers.events.get_nowait())
    return found


def printed(tracers: Tracers) -> list[TracerOutput]:
    return [each for each in events(tracers) if isinstance(each, TracerOutput)]


async def test_a_request_is_answered(make: Make) -> None:
    tracers = make()
    assert isinstance(await ask(tracers, "answer"), Traced)
    shown = await tracers.ask(Show(NEW, 1))
    assert isinstance(shown, Listing)
    assert shown.text == "text"


async def test_requests_before_the_tracer_is_ready_wait_for_it(make: Make) -> None:
    tracers = make()
    answers = await asyncio.gather(*(ask(tracers, "answer") for _ in range(5)))
    assert {type(answer) for answer in answers} == {Traced}


async def test_a_person_goes_before_the_background(make: Make) -> None:
    tracers = make()
    order: list[str] = []

    async def asked(name: str, priority: Priority) -> None:
        await ask(tracers, "answer", priority=priority)
        order.append(name)

    await asyncio.gather(
        asked("background", Priority.BACKGROUND),
        asked("hints", Priority.DOCUMENT),
        asked("hover", Priority.PERSON),
    )
    assert order == ["hover", "hints", "background"]


async def test_a_request_that_waits_overtakes_others_when_somebody_asks_for_it(make: Make) -> None:
    tracers = make()
    order: list[str] = []

    async def asked(name: str, priority: Priority | Haste) -> None:
        await ask(tracers, "answer", priority=priority)
        order.append(name)

    haste = Haste(Priority.BACKGROUND)
    documents = [asked(f"document {number}", Priority.DOCUMENT) for number in range(5)]
    asking = asyncio.gather(*documents, asked("hover", haste), asked("hints", Priority.SCREEN))
    await asyncio.sleep(0)
    haste.rise(Priority.PERSON)
    haste.rise(Priority.SCREEN)  # it is more urgent already
    await asking
    assert order[:2] == ["hover", "hints"]


async def test_stages_are_told(make: Make) -> None:
    tracers = make()
    stages: list[str] = []
    await ask(tracers, "answer", on_stage=lambda stage: stages.append(stage.stage))
    assert stages == ["execute"]


async def test_a_spare_takes_over_when_the_tracer_is_killed(make: Make) -> None:
    tracers = make()
    first, spare = await warm(tracers)
    os.kill(first, signal.SIGKILL)
    assert await pid_of(tracers) == spare
    await until(lambda: len(tracers.pids) == 2)


async def test_a_process_that_a_file_has_spoiled_is_replaced_for_other_files(make: Make) -> None:
    tracers = make()
    first, spare = await warm(tracers)
    events(tracers)
    for _ in range(2):  # the file itself goes on being answered there
        answer = await ask(tracers, "spoil", "a.py")
        assert isinstance(answer, Traced)
        assert int(answer.jaxpr) == first
    answer = await ask(tracers, "overlays", "b.py", texts={"b.py": "text"})
    assert isinstance(answer, Traced)
    assert answer.jaxpr == "[('b.py', 'text')]"
    assert await pid_of(tracers) == spare
    happened = events(tracers)
    reason = "a.py left a thread running"
    assert [each.death.last_words for each in happened if isinstance(each, Replaced)] == [reason]
    assert any(isinstance(each, TracerStatus) and reason in each.message for each in happened)


async def test_files_that_spoil_one_process_after_another_are_all_answered(make: Make) -> None:
    tracers = make()
    answers = [await ask(tracers, "spoil", f"{n}.py") for n in range(8)]
    assert len({each.jaxpr for each in answers if isinstance(each, Traced)}) == 8
    await pid_of(tracers)


async def test_a_request_that_no_process_is_fit_for_is_asked_twice_at_most(make: Make) -> None:
    tracers = make()
    outcome = await ask(tracers, "never fit")
    assert isinstance(outcome, Died)
    assert outcome.death.reason is Reason.SPOILED
    assert outcome.death.last_words == "nothing helps"
    await pid_of(tracers)


@pytest.mark.parametrize("how", ["exit 3", "hang"])
async def test_a_guardian_that_is_stopped_holds_nothing_up(make: Make, how: str) -> None:
    tracers = make(limits=Limits(execute=0.5))
    await warm(tracers)
    for guardian in psutil.Process().children():
        guardian.suspend()
    async with asyncio.timeout(20):
        assert isinstance(await ask(tracers, how), Died)
        await pid_of(tracers)


async def test_a_spare_that_dies_is_replaced(make: Make) -> None:
    tracers = make()
    first, spare = await warm(tracers)
    os.kill(spare, signal.SIGKILL)
    await until(lambda: tracers.pids == (first,))
    assert await pid_of(tracers) == first


async def test_a_tracer_that_has_grown_gives_way_to_the_spare(make: Make) -> None:
    tracers = make()
    first, spare = await warm(tracers)
    for _ in range(12):
        await ask(tracers, "answer")
    await ask(tracers, "grow 350")
    await until(lambda: psutil.Process(first).memory_info().rss > 350 * MIB)
    # On a busy machine, its size may be known before.
    assert await pid_of(tracers) in (first, spare)
    await until(lambda: tracers.pids[:1] == (spare,))
    assert await pid_of(tracers) == spare
    assert not [event for event in events(tracers) if isinstance(event, Replaced)]


async def test_without_a_spare_a_new_tracer_is_started(make: Make) -> None:
    tracers = make(spare=False)
    first = await pid_of(tracers)
    assert tracers.pids == (first,)
    os.kill(first, signal.SIGKILL)
    assert await pid_of(tracers) != first


@pytest.mark.parametrize(
    ("function", "reason", "message"),
    [
        ("exit 7", Reason.EXITED, "exited the process with status 7"),
        ("crash", Reason.CRASHED, "crashed the process (SIGSEGV, segmentation fault)"),
        ("suicide", Reason.CRASHED, "SIGKILL"),
        ("close everything", Reason.PROTOCOL, "disconnected the process from the server"),
        ("garble", Reason.PROTOCOL, "disconnected the process from the server"),
    ],
)
async def test_a_death_is_told_and_the_next_request_works(
    make: Make, function: str, reason: Reason, message: str
) -> None:
    tracers = make()
    died = await death_of(tracers, function)
    assert died.death.reason is reason
    assert message in died.message
    assert died.stage == "execute"
    assert [event.file for event in events(tracers) if isinstance(event, Replaced)] == ["a.py"]


async def test_the_last_words_are_kept(make: Make) -> None:
    died = await death_of(make(), "exit 1")
    assert died.death.last_words == "so long"


@pytest.mark.parametrize("stage", ["execute", "inputs", "trace"])
async def test_each_stage_has_its_own_limit(make: Make, stage: str) -> None:
    long = 1000.0
    limits = {"execute": long, "inputs": long, "trace": long, stage: 0.3}
    died = await ask(make(limits=Limits(**limits)), f"stage {stage}")
    assert isinstance(died, Died)
    assert died.message.endswith("took longer than 0.3 s")
    assert died.help == f"increase the setting `timeouts.{stage}`"


async def test_a_loop_that_ignores_signals_is_ended(make: Make) -> None:
    died = await ask(make(limits=Limits(execute=0.3)), "hang")
    assert isinstance(died, Died)
    assert died.death.reason is Reason.TIMEOUT


async def test_memory_is_limited(make: Make) -> None:
    died = await death_of(make(limits=Limits(memory=200 * MIB)), "eat")
    assert died.death.reason is Reason.MEMORY
    assert died.death.used > died.death.limit == 200 * MIB
    assert "limit 200 MiB" in died.message
    assert died.help == "increase the setting `memoryLimit`"


async def test_the_number_of_processes_is_limited(make: Make) -> None:
    died = await death_of(make(limits=Limits(processes=20)), "breed")
    assert died.death.reason is Reason.PROCESSES
    assert died.message.endswith("limit 20")


async def test_a_fork_bomb_dies_entirely(make: Make) -> None:
    tracers = make(limits=Limits(execute=1.0))
    assert isinstance(await ask(tracers, "bomb"), Died)
    await tracers.aclose()


async def test_a_daemon_that_user_code_left_dies_with_the_tracer(make: Make) -> None:
    tracers = make()
    await ask(tracers, "leave a daemon")
    (daemon,) = [p for p in psutil.Process().children(recursive=True) if p.name() == "sleep"]
    await tracers.restart()
    assert not daemon.is_running()


async def test_cancelling_the_caller_cancels_the_request(make: Make) -> None:
    tracers = make()
    first = await pid_of(tracers)
    begun = asyncio.Event()
    request = asyncio.create_task(ask(tracers, "until cancelled", on_stage=lambda _: begun.set()))
    await begun.wait()
    request.cancel()
    assert await pid_of(tracers) == first


async def test_a_cancelled_request_that_waits_is_dropped(make: Make) -> None:
    tracers = make()
    first = asyncio.create_task(tracers.ask(trace(tracers, "until cancelled")))
    second = asyncio.create_task(tracers.ask(trace(tracers, "exit 1")))
    await asyncio.sleep(0)
    second.cancel()
    first.cancel()
    assert isinstance(await ask(tracers, "answer"), Traced)
    assert first.cancelled()
    assert second.cancelled()


async def test_a_request_that_ignores_its_cancellation_costs_the_tracer_once_another_waits(
    make: Make,
) -> None:
    tracers = make(limits=Limits(cancel=0.2))
    first = await pid_of(tracers)
    begun = asyncio.Event()
    request = asyncio.create_task(ask(tracers, "hang", on_stage=lambda _: begun.set()))
    await begun.wait()
    request.cancel()
    assert await pid_of(tracers) != first


async def test_a_request_is_answered_with_the_texts_that_it_was_asked_with(make: Make) -> None:
    tracers = make()
    busy = asyncio.create_task(ask(tracers, "overlays", texts={"b.py": "x = 1", "c.py": "y = 1"}))
    # Asked while the first one runs: nothing that is asked or edited later changes its texts.
    queued = [
        asyncio.create_task(ask(tracers, "overlays", texts=texts))
        for texts in ({"b.py": "x = 2"}, {"b.py": "x = 3", "d.py": ""}, {})
    ]
    answers = [getattr(await each, "jaxpr", each) for each in (busy, *queued)]
    assert answers == [
        "[('b.py', 'x = 1'), ('c.py', 'y = 1')]",
        "[('b.py', 'x = 2'), ('c.py', None)]",
        "[('b.py', 'x = 3'), ('c.py', None), ('d.py', '')]",
        "[('b.py', None), ('c.py', None), ('d.py', None)]",
    ]


async def test_the_texts_of_a_request_are_given_to_every_tracer(make: Make) -> None:
    tracers = make()
    first = await ask(tracers, "overlays", texts={"b.py": "x = 1", "c.py": "y = 1"})
    second = await ask(tracers, "overlays", texts={"b.py": "x = 2"})
    await death_of(tracers, "exit 1")
    third = await ask(tracers, "overlays", texts={"b.py": "x = 2"})
    assert [getattr(answer, "jaxpr", answer) for answer in (first, second, third)] == [
        "[('b.py', 'x = 1'), ('c.py', 'y = 1')]",
        "[('b.py', 'x = 2'), ('c.py', None)]",
        "[('b.py', 'x = 2')]",
    ]


async def test_what_has_killed_a_tracer_is_not_run_again(make: Make) -> None:
    tracers = make()
    first = await ask(tracers, "exit 1")
    assert isinstance(first, Died)
    assert not first.repeated
    before = await pid_of(tracers)
    again = await ask(tracers, "exit 1")
    assert isinstance(again, Died)
    assert again.message.endswith("exited the process with status 1")
    assert again.notes == ("it will not run again until the code changes",)
    assert await pid_of(tracers) == before
    changed = await ask(tracers, "exit 2")
    assert isinstance(changed, Died)
    assert not changed.repeated
    await tracers.restart()
    restarted = await ask(tracers, "exit 1")
    assert isinstance(restarted, Died)
    assert not restarted.repeated


async def test_a_tracer_broken_from_within_is_replaced_when_that_shows(make: Make) -> None:
    tracers = make()
    first = await pid_of(tracers)
    await ask(tracers, "break")
    assert await pid_of(tracers) != first


async def test_a_file_at_which_every_tracer_fails_costs_no_more_than_one(make: Make) -> None:
    tracers = make()
    await pid_of(tracers)
    assert isinstance(await ask(tracers, "fail"), Failed)
    second = await pid_of(tracers)
    for _ in range(3):
        assert isinstance(await ask(tracers, "fail"), Failed)
    assert await pid_of(tracers) == second


async def test_an_interpreter_that_cannot_trace_says_so(make: Make) -> None:
    tracers = make("refuses")
    outcome = await ask(tracers, "answer")
    assert isinstance(outcome, Died)
    assert outcome.message == "There is no JAX."
    assert outcome.external
    assert tracers.status == TracerStatus(State.FAILED, "There is no JAX.")


@pytest.mark.parametrize(
    ("mode", "limits", "what"),
    [
        ("dies", Limits(), "exited on startup with status 3 (no module named jax, or so). "),
        ("noise", Limits(), "unexpected handshake"),
        ("old", Limits(), "unexpected handshake"),
        ("silent", Limits(start=0.5), "no handshake within 0.5 s"),
    ],
    ids=["dies", "noise", "old", "silent"],
)
async def test_a_tracer_that_does_not_start_fails_with_a_way_out(
    make: Make, mode: str, limits: Limits, what: str
) -> None:
    tracers = make(mode, limits=limits)
    outcome = await ask(tracers, "answer")
    assert isinstance(outcome, Died)
    assert what in outcome.message
    assert sys.executable in outcome.message
    assert "`jaxsight.python`" in outcome.message
    assert tracers.status.state is State.FAILED


async def test_a_command_that_is_not_there_fails_with_a_way_out(tmp_path: Path) -> None:
    missing = str(tmp_path / "python")
    tracers = Tracers(missing, str(tmp_path))
    outcome = await ask(tracers, "answer")
    assert isinstance(outcome, Died)
    assert "No such file" in outcome.message
    await tracers.aclose()


async def test_a_python_that_is_too_old_is_told_in_one_sentence(tmp_path: Path) -> None:
    python = tmp_path / "python"
    old = "import runpy, sys; sys.version_info = (3, 9, 18); runpy.run_path('{}', None, '__main__')"
    run = f'exec {sys.executable} -c "{old.format("$boot")}"'
    await asyncio.to_thread(
        python.write_text, f"#!/bin/sh\nwhile [ $# -gt 1 ]; do boot=$1; shift; done\n{run}\n"
    )
    await asyncio.to_thread(python.chmod, 0o755)
    tracers = Tracers(str(python), str(tmp_path))
    outcome = await ask(tracers, "answer")
    assert isinstance(outcome, Died)
    assert outcome.message == (
        f"{sys.executable} is Python 3.9.18; jaxsight requires 3.11 or newer. Choose another "
        "interpreter with the setting `jaxsight.python` (`python` under [tool.jaxsight] in "
        "pyproject.toml)."
    )
    assert tracers.status == TracerStatus(State.FAILED, outcome.message)
    await tracers.aclose()


async def test_starting_is_not_tried_without_end(make: Make) -> None:
    tracers = make("dies")
    async with asyncio.timeout(PATIENCE):
        while tracers.status.state is not State.FAILED or not await gives_up(tracers):
            await ask(tracers, "answer")
            await asyncio.sleep(0.05)


async def gives_up(tracers: Tracers) -> bool:
    starts = [
        e for e in events(tracers) if isinstance(e, TracerStatus) and e.state is State.STARTING
    ]
    return not starts


async def test_status_follows_the_work(make: Make) -> None:
    tracers = make(spare=False)
    await ask(tracers, "answer")
    await until(lambda: tracers.status.state is State.READY)
    states = [event.state for event in events(tracers) if isinstance(event, TracerStatus)]
    assert states[0] is State.STARTING
    assert states[-2:] == [State.BUSY, State.READY]


async def test_output_is_told_under_the_file_that_was_run(make: Make) -> None:
    tracers = make()
    await ask(tracers, "say hello", "hello.py")
    await ask(tracers, "say 你好", "other.py")
    assert printed(tracers) == [
        TracerOutput("hello.py", "hello\n"),
        TracerOutput("other.py", "你好\n"),
    ]


async def test_output_after_a_request_belongs_to_no_file(make: Make) -> None:
    tracers = make()
    await ask(tracers, "mutter")
    found: list[TracerOutput] = []
    await until(lambda: bool(found.extend(printed(tracers)) or found))
    assert found == [TracerOutput("", "left behind\n")]


async def test_endless_output_is_cut_and_blocks_nobody(make: Make) -> None:
    tracers = make(limits=Limits(output=10_000))
    assert isinstance(await ask(tracers, "print 100000"), Traced)
    text = "".join(output.text for output in printed(tracers))
    assert len(text) < 11_000
    assert text.endswith("… output truncated after 10000 bytes\n")
    await ask(tracers, "say more")
    assert [output.text for output in printed(tracers)] == ["more\n"]


async def test_what_is_open_at_the_end_is_answered(make: Make) -> None:
    tracers = make()
    requests = [asyncio.create_task(ask(tracers, "until cancelled")) for _ in range(2)]
    await asyncio.sleep(0.2)
    await tracers.aclose()
    outcomes = await asyncio.gather(*requests, ask(tracers, "answer"))
    assert {outcome.death.reason for outcome in outcomes if isinstance(outcome, Died)} == {
        Reason.UNAVAILABLE
    }
    assert len(outcomes) == 3


SLOW_IMPORT = Chunk("51", "51", "import slow")
FAST_IMPORT = Chunk("fa", "fa", "import fast")


async def slow_running(tracers: Tracers) -> asyncio.Task[Outcome[Traced]]:
    """Begin a request that is stuck in an import, and wait until the spare is ready."""
    await pid_of(tracers)
    await until(lambda: tracers.spare_ready)
    request = replace(trace(tracers, "chunk 51"), chunks=(SLOW_IMPORT, FAST_IMPORT))
    running = asyncio.create_task(tracers.ask(request))
    await until(lambda: "import slow (" in tracers.status.message)
    return running


async def test_requests_run_past_an_import_that_takes_long(make: Make) -> None:
    tracers = make()
    running = await slow_running(tracers)
    needs_less = replace(trace(tracers, "answer", "b.py"), chunks=(FAST_IMPORT,))
    needs_it = replace(trace(tracers, "answer", "c.py"), chunks=(SLOW_IMPORT,))
    waiting = asyncio.create_task(tracers.ask(needs_it, priority=Priority.PERSON))
    async with asyncio.timeout(PATIENCE):
        passed = await tracers.ask(needs_less, priority=Priority.BACKGROUND)
        assert isinstance(passed, Traced)
        # What follows about that trace is answered by the same process.
        shown = await tracers.ask(Show(NEW, passed.id))
        assert isinstance(shown, Listing)
    assert not waiting.done()
    assert not running.done()
    assert tracers.status.message.startswith("chunk 51: import slow (")
    waiting.cancel()
    running.cancel()


async def test_a_death_past_a_slow_import_costs_one_answer(make: Make) -> None:
    tracers = make()
    running = await slow_running(tracers)
    outcome = await ask(tracers, "crash", "b.py")
    assert isinstance(outcome, Died)
    assert not running.done()
    running.cancel()
    assert isinstance(await ask(tracers, "answer", "c.py"), Traced)


async def test_a_long_trace_of_one_file_delays_no_person_who_asks_about_another(make: Make) -> None:
    # With the patience of the background, nothing would run past it.
    tracers = make()
    await pid_of(tracers)
    await until(lambda: tracers.spare_ready)
    running = asyncio.create_task(ask(tracers, "stage trace"))
    await until(lambda: "stage trace: trace (" in tracers.status.message)
    haste = Haste(Priority.DOCUMENT)
    waiting = asyncio.create_task(ask(tracers, "answer", "b.py", priority=haste))
    await asyncio.sleep(0)
    step = tracers.step(haste)
    assert step is not None
    assert (step.title, step.file, step.stage) == ("stage trace", "a.py", "trace")
    haste.rise(Priority.PERSON)
    assert isinstance(await waiting, Traced)
    assert not running.done()
    running.cancel()


async def test_a_spare_is_started_for_requests_behind_a_step_that_takes_long(make: Make) -> None:
    # A tracer that was killed has taken the spare along as its successor, and there is no pause.
    tracers = make()
    first, _ = await warm(tracers)
    os.kill(first, signal.SIGKILL)
    running = asyncio.create_task(ask(tracers, "stage trace"))
    await until(lambda: "stage trace: trace (" in tracers.status.message)
    assert isinstance(await ask(tracers, "answer", "b.py"), Traced)
    assert not running.done()
    running.cancel()


async def test_a_spare_that_ran_past_takes_over_later(make: Make) -> None:
    tracers = make()
    running = await slow_running(tracers)
    passed = await ask(tracers, "answer", "b.py")
    assert isinstance(passed, Traced)
    running.cancel()  # the tracer ignores it, and is replaced once another request waits
    assert await pid_of(tracers) == int(passed.jaxpr)


async def test_what_others_may_have_killed_is_tried_a_few_times(make: Make) -> None:
    tracers = make()
    for _ in range(5):
        outcome = await ask(tracers, "suicide")
        assert isinstance(outcome, Died)
        assert not outcome.repeated
    outcome = await ask(tracers, "suicide")
    assert isinstance(outcome, Died)
    assert outcome.repeated
    tracers.retry()
    outcome = await ask(tracers, "suicide")
    assert isinstance(outcome, Died)
    assert not outcome.repeated
