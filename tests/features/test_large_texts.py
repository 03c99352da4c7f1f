"""Large and hostile texts: the event loop goes on, what is too large says so, and the last text is
the one that counts.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from jaxsight.session import Session
from jaxsight.source import limits
from jaxsight.source.module import Module
from jaxsight.source.text import Position
from tools.perf.loop_watch import LoopWatch, Turn

EXAMPLE = '    """\n    Example inputs:\n        x: f32[3]\n    """\n'
SMALL = f"def small(x):\n{EXAMPLE}    return x\n"
CALM = 0.3
"""Seconds of processor time: a fraction of what reading a large text takes."""
OFTEN = 10
"""Turns of the loop: many times those of reading a text in one go."""


def function(name: str, statements: int) -> str:
    return f"def {name}(x):\n{EXAMPLE}" + "    x = x * 2.0 + x[0]\n" * statements + "    return x\n"


def turns_of(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Run something on a watched loop; how many turns that took.

    `python -m tools.perf --only turns` tells how long they are.
    """
    turns: list[Turn] = []
    with asyncio.Runner(loop_factory=LoopWatch(turns.append, 0.0).loop) as runner:
        runner.run(work())
    return len(turns)


def session_in(folder: Path) -> Session:
    session = Session()
    session.configure([str(folder)], {}, trusted=False)  # nothing runs: this is about texts alone
    return session


@pytest.mark.parametrize(
    "text",
    [
        "".join(function(f"f{n}", 10) for n in range(1_000)),
        "".join(f"x{n} = {n}\n" for n in range(9_000)),
        '"""\n' * 9_001,
        "x = [\n" + "    1,\n" * 200_000 + "]\n",
        "x = 1; " * 100_000,
    ],
    ids=["functions", "assignments", "strings", "list", "one line"],
)
def test_the_loop_turns_while_a_large_text_is_read(tmp_path: Path, text: str) -> None:
    async def work() -> None:
        session = session_in(tmp_path)
        path = str(tmp_path / "large.py")
        session.open(path, text)
        await session.hover(path, Position(0, 5))
        await session.report(path)
        session.change(path, '"""' + text)
        await session.hints(path)
        await session.aclose()

    assert turns_of(work) > OFTEN


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["(\n", "f(\n", "@a\n", "x = 1 \\\n", "def f(:\n", "x = 'a\n", "'''\n(\n"],
)
def test_reading_what_is_not_closed_takes_time_in_proportion_to_its_length(line: str) -> None:
    def seconds(count: int) -> float:
        began = time.thread_time()
        Module.parse(line * count)
        return time.thread_time() - began

    seconds(10)
    # A collection takes as long as the heap of all tests before it is large.
    gc.disable()
    try:
        assert any(seconds(4_000) < 10 * seconds(1_000) + CALM for _ in range(3))
    finally:
        gc.enable()


def test_another_file_is_answered_about_while_a_large_one_is_read(tmp_path: Path) -> None:
    async def work() -> None:
        session = session_in(tmp_path)
        large, small = str(tmp_path / "large.py"), str(tmp_path / "small.py")
        session.open(large, "".join(function(f"f{n}", 20) for n in range(1_000)))
        waiting = asyncio.ensure_future(session.hover(large, Position(0, 5)))
        await asyncio.sleep(0)
        session.open(small, SMALL)
        assert await session.hover(small, Position(0, 5)) is not None
        assert not waiting.done()
        assert await waiting is not None
        await session.aclose()

    asyncio.run(work())


def test_the_newest_text_is_the_one_that_is_answered_about(tmp_path: Path) -> None:
    async def work() -> None:
        session = session_in(tmp_path)
        path = str(tmp_path / "large.py")
        filler = "".join(function(f"filler{n}", 10) for n in range(200))
        session.open(path, filler + SMALL)
        answers = [asyncio.ensure_future(session.lenses(path))]
        for name in ("one", "two", "three"):
            await asyncio.sleep(0)
            session.change(path, filler + SMALL.replace("small", name) + filler)
            answers.append(asyncio.ensure_future(session.lenses(path)))
        for answer in answers:
            await answer
        session.change(path, SMALL)
        assert session.engine.documents.functions(path) == ["small"]
        assert {lens.range.start.line for lens in await session.lenses(path)} == {0}
        await session.aclose()

    asyncio.run(work())


def test_a_file_that_is_closed_while_it_is_read_has_no_answers(tmp_path: Path) -> None:
    async def work() -> None:
        session = session_in(tmp_path)
        path = str(tmp_path / "large.py")
        session.open(path, function("f", 2_000))
        waiting = asyncio.ensure_future(session.hover(path, Position(0, 5)))
        await asyncio.sleep(0)
        session.close(path)
        assert await waiting is None
        session.open(path, SMALL)
        assert session.engine.documents.functions(path) == ["small"]
        await session.aclose()

    asyncio.run(work())


def findings_of(folder: Path, text: str) -> list[tuple[str, int, str]]:
    async def work() -> list[tuple[str, int, str]]:
        session = session_in(folder)
        path = str(folder / "file.py")
        session.open(path, text)
        found = (await session.report(path)).reported
        assert all(len(one.message) <= 100 for one in found)
        await session.aclose()
        return [(one.code, one.range.start.line, one.message) for one in found]

    return asyncio.run(work())


def test_a_statement_that_is_too_large_is_reported_and_the_rest_is_analyzed(tmp_path: Path) -> None:
    table = "TABLE = [" + "1, " * limits.MOST_TOKENS + "]\n"
    assert findings_of(tmp_path, SMALL + table + SMALL.replace("small", "other")) == [
        ("JX914", 6, "statement of more than 30,000 tokens is not analyzed")
    ]
    module = Module.parse(SMALL + table + SMALL.replace("small", "other"))
    assert [function.qualname for _, function in module.functions] == ["small", "other"]


def test_a_long_docstring_makes_no_statement_too_large() -> None:
    module = Module.parse('def f(x):\n    """' + "some words\n" * 50_000 + '"""\n    return x\n')
    assert [function.qualname for _, function in module.functions] == ["f"]


def test_a_docstring_that_is_too_long_is_not_searched_and_says_so(tmp_path: Path) -> None:
    text = SMALL.replace("    Example", "    some words\n" * 10_000 + "    Example")
    assert findings_of(tmp_path, text) == [
        (
            "JX901",
            1,
            "docstring of 150,043 characters is not searched for example inputs (limit: 100,000)",
        )
    ]
    assert findings_of(tmp_path, text.replace("Example inputs", "Arguments")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "# " + "x" * limits.LONGEST_FILE,
            "file of 2,000,002 characters is not analyzed (limit: 2,000,000)",
        ),
        ("x = 1\n" * 10_001, "file of more than 10,000 top-level statements is not analyzed"),
    ],
    ids=["long", "many statements"],
)
def test_a_file_that_is_too_large_is_reported_until_it_is_not(
    tmp_path: Path, text: str, message: str
) -> None:
    assert findings_of(tmp_path, text) == [("JX914", 0, message)]
    module = Module.parse(text)
    assert module.chunks == ()
    assert [f.qualname for _, f in module.edited(SMALL).functions] == ["small"]
    assert Module.parse(SMALL).edited(text).too_large == message
