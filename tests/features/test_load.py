"""What one file does, or many do, delays nobody who asks about another."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import Progress
from jaxsight.features.named_function import view_of
from jaxsight.queries.long_work import Turns
from jaxsight.session import Session
from jaxsight.source.text import Position, Range
from tests.marks import Mark
from tests.quiet import QUIET

pytestmark = pytest.mark.asyncio(loop_scope="module")

SANE = '''\
import jax.numpy as jnp


def sane(x):
    """
    Example inputs:
        x: f32[3]
    """
    return jnp.sin(x) * 1.5
'''

KILLED = '''\
import os
from pathlib import Path
import jax.numpy as jnp


def killed(x):
    """
    Example inputs:
        x: f32[3]
    """
    COUNT
    os.kill(os.getpid(), 9)
    return jnp.sin(x)
'''

# C code that holds Python's lock for minutes, and cannot be interrupted.
LOCKED = '''\
import jax.numpy as jnp

N = 10**10**9


def locked(x):
    """
    Example inputs:
        x: f32[3]
    """
    y = jnp.sin(x)
    return y
'''


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("", "utf-8")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(project: Path) -> AsyncIterator[Session]:
    session = Session()
    session.configure([str(project)], {**QUIET, "python": sys.executable})
    yield session
    await session.aclose()


def _place(text: str, word: str) -> Position:
    line = next(n for n, each in enumerate(text.split("\n")) if word in each)
    return Position(line, text.split("\n")[line].index(word))


async def _hover(session: Session, path: str, text: str, word: str) -> str:
    hover = await session.hover(path, _place(text, word))
    assert hover is not None
    return hover.markdown


@pytest.mark.slow
async def test_what_holds_the_tracer_is_named_with_its_time_and_how_to_stop_it(
    session: Session, project: Path
) -> None:
    path = str(project / "locked.py")
    session.open(path, LOCKED)
    for word in ("locked(", "y = "):
        shown = await _hover(session, path, LOCKED, word)
        assert "is not traced yet" in shown
        assert "waiting for `N = 10**10**9`, begun at " in shown
        assert "run `jaxsight.restart`; it ends after " in shown
        assert "(`timeouts.execute`)" in shown
    other = str(project / "sane.py")
    session.open(other, SANE)
    while "lambda" not in (shown := await _hover(session, other, SANE, "sane(")):
        assert "waiting for `N = 10**10**9` of locked.py" in shown  # a spare is starting
    details = []
    while not session.events.empty():
        event = session.events.get_nowait()
        if isinstance(event, Progress) and event.title == "Tracing locked":
            details.append(event.detail)
    assert any(each.startswith("waiting for `N = 10**10**9`, begun at ") for each in details)
    # Edited, it is stopped at once.
    text = LOCKED.replace("10**10**9", "10")
    session.change(path, text)
    while "lambda" not in await _hover(session, path, text, "locked("):
        pass
    session.close(path)
    session.close(other)


@pytest.mark.slow
async def test_a_function_whose_tracer_was_killed_runs_again_only_for_a_person(
    session: Session, project: Path
) -> None:
    count = Mark(project / "count")
    path = str(project / "killed.py")
    text = KILLED.replace("COUNT", count.statement)
    session.open(path, text)
    assert "SIGKILL" in await _hover(session, path, text, "killed(")
    runs = count.runs
    # What an editor asks on its own, again and again.
    for _ in range(3):
        await session.hints(path, Range(Position(0, 0), Position(20, 0)))
        assert any(
            "SIGKILL" in finding.message for finding in (await session.report(path)).reported
        )
        session.choose_target("")  # everything is traced again in the background
    await asyncio.sleep(1)
    assert count.runs == runs
    while count.runs == runs:
        assert "SIGKILL" in await _hover(session, path, text, "killed(")
    session.close(path)


async def test_messages_that_have_arrived_come_before_what_nobody_waits_for() -> None:
    turns, order = Turns(), list[str]()

    async def background(name: str) -> None:
        await turns.breathe()
        order.append(name)

    async def person() -> None:
        await turns.breathe(waiting=True)
        order.append("hints")

    async def messages() -> None:
        for number in range(5):
            turns.attend()
            order.append(f"message {number}")
            await asyncio.sleep(0)

    reading = asyncio.create_task(messages())
    others = [asyncio.create_task(background(f"document {number}")) for number in range(3)]
    asked = asyncio.create_task(person())
    await asyncio.gather(reading, asked, *others)
    assert order.index("hints") < order.index("document 0")
    assert order[-3:] == ["document 0", "document 1", "document 2"]
    assert [each for each in order if each.startswith("message")] == [
        f"message {number}" for number in range(5)
    ]


async def test_a_trace_that_waits_behind_many_documents_is_asked_first(
    session: Session, project: Path
) -> None:
    names = [str(project / f"many{number}.py") for number in range(40)]
    for number, path in enumerate(names):
        session.open(path, SANE.replace("1.5", f"{number}.25"))
    text = SANE.replace("1.5", "39.25")
    await _hover(session, names[-1], text, "sane(")
    memory = session.engine.memory
    traced = sum(memory.traced.get((path, "sane", "")) is not None for path in names)
    assert traced < len(names)
    for path in names:
        session.close(path)


@pytest.mark.slow
async def test_few_texts_of_a_function_are_remembered(session: Session, project: Path) -> None:
    path = str(project / "edited.py")
    session.open(path, SANE)
    for number in range(40):
        text = SANE.replace("1.5", f"{number}.75")
        session.change(path, text)
        await _hover(session, path, text, "sane(")
    memory = session.engine.memory
    answers = [answer for _, answer in memory.answers.items() if answer.question.path == path]
    assert len(answers) == 16
    assert text in {answer.question.module.text for answer in answers}
    session.close(path)


async def test_work_about_older_texts_ends_when_there_is_work_about_a_newer_one(
    session: Session, project: Path
) -> None:
    # Compiles of each text would wait for all earlier ones.
    path = str(project / "compiled.py")
    waiting = session.engine.waiting
    session.open(path, SANE)
    works: list[asyncio.Future[None]] = []
    for number in range(3):
        text = SANE.replace("1.5", f"{number}.625")
        session.change(path, text)
        view = await view_of(session.engine, path, "sane")
        works += [asyncio.get_running_loop().create_future() for _ in range(2)]
        for work in works[-2:]:
            waiting.go_on(work, view)
    await asyncio.sleep(0)
    assert [work.cancelled() for work in works] == [True] * 4 + [False] * 2
    session.close(path)
    assert all(work.cancelled() for work in works)
