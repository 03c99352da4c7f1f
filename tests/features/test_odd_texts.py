"""Texts as editors send them: whatever the line ends, marks and characters, shapes show at their
names.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

PLAIN = '''\
import jax.numpy as jnp


def f(x):
    """
    Example inputs:
        x: f32[3]
    """
    y = x[None] * 2
    return jnp.sum(y)
'''
LINE, COLUMN = 8, 4

FILLER = "\n".join(
    f"def filler_{i}(a, b):\n    c = a + {i}\n    d = c * b\n    return [c, d]\n"
    for i in range(2000)
)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (PLAIN, LINE, COLUMN),
        (PLAIN.replace("\n", "\r\n"), LINE, COLUMN),
        (PLAIN.replace("\n", "\r"), LINE, COLUMN),
        ("\r\n# mixed\r" + PLAIN, LINE + 2, COLUMN),
        ("\ufeff" + PLAIN, LINE, COLUMN),
        ("\ufeff# -*- coding: latin-1 -*-\n" + PLAIN, LINE + 1, COLUMN),
        ("# coding: no-such-encoding\n" + PLAIN, LINE + 1, COLUMN),
        ("NEXT = 'a\u2028b\x0c\x85'\n\x0c\n" + PLAIN, LINE + 2, COLUMN),
        (PLAIN.replace("    y = ", "    s = '😀𝜎é'; y = "), LINE, COLUMN + len("s = '😀𝜎é'; ")),
        (
            PLAIN.replace("    y = ", "\ty = ")
            .replace("    ret", "\tret")
            .replace('    """', '\t"""'),
            LINE,
            1,
        ),
        (PLAIN.replace("import jax", "LONE = '\ud83d'\nimport jax"), LINE + 1, COLUMN),
        (FILLER + PLAIN + FILLER, 9_999 + LINE, COLUMN),
        (PLAIN + "\n\ndef broken(:\n    '''", LINE, COLUMN),
        (PLAIN.removesuffix("\n"), LINE, COLUMN),
    ],
    ids=[
        "plain",
        "CRLF",
        "CR",
        "mixed line ends",
        "BOM",
        "BOM and cookie",
        "unknown cookie",
        "separators that end no line",
        "surrogate pairs before the cursor",
        "tabs",
        "lone surrogate",
        "20 000 lines",
        "broken function below",
        "no line end at the end",
    ],
)
async def test_the_shape_shows_at_the_name(
    session: Session, tmp_path_factory: pytest.TempPathFactory, text: str, line: int, column: int
) -> None:
    file = str(tmp_path_factory.mktemp("odd") / "odd.py")
    session.open(file, text)
    [hint] = await session.hints(file, wait=True)
    assert hint.label == ": f32[1,3]"
    assert hint.range.start == Position(line, column)
    hover = await session.hover(file, Position(line, column))
    assert hover is not None
    assert "y: f32[1,3]" in hover.markdown
    assert (await session.report(file)).reported == []
    session.close(file)


@pytest.mark.parametrize(
    "text", ["", "\n", "\x00", "def f(x):\x00\n", "'''", "\\", "(" * 500, "\ufeff"]
)
async def test_what_is_no_program_shows_nothing(session: Session, text: str) -> None:
    session.open("/nowhere/odd.py", text)
    assert await session.hints("/nowhere/odd.py", wait=True) == []
    assert await session.hover("/nowhere/odd.py", Position(0, 0)) is None
    assert await session.completions("/nowhere/odd.py", Position(0, 0)) == []
    session.close("/nowhere/odd.py")


@pytest.mark.parametrize("folder", ["John's", 'the "new" one', "a<b>c", "line\nfeed", "section §1"])
async def test_an_error_is_at_its_line_whatever_the_folder_is_called(
    tmp_path: Path, folder: str
) -> None:
    path = tmp_path / folder / "model.py"
    path.parent.mkdir()
    session = session_without_spare()
    session.configure([str(path.parent)], {**QUIET, "python": sys.executable})
    try:
        session.open(str(path), PLAIN.replace("x[None]", "x.nothing"))
        findings = (await session.report(str(path))).reported
    finally:
        await session.aclose()
    assert [finding.range.start.line for finding in findings] == [LINE]
