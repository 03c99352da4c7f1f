"""Measured times beside estimates, and the marks of those of an older text.

The times are made up: what is measured is tested in `tests/measuring`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.named_function import compiled_function
from jaxsight.queries.memory import Measurement
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.session import Session
from jaxsight.source.text import Position, Range
from jaxsight.targets.target import parse
from jaxsight.wire.messages.measuring import (
    Conditions,
    KernelTime,
    Measured,
    ProgramTimes,
    Spread,
)
from tests.sessions import session_without_spare

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

MODEL = '''\
import jax.numpy as jnp


def ranked(x):
    """
    Example inputs:
        x: f32[64, 64]
    """
    y = jnp.sort(x, axis=1)
    return jnp.linalg.norm(y @ x)


def other(x):
    """
    Example inputs:
        x: f32[8]
    """
    return x + 1
'''
EDITED = MODEL.replace("axis=1)", "axis=0)")
SORT, PRODUCT = 8, 9
"""Lines of `ranked`, from 0."""
WALL = 412e-6
SORTING = 0.75
"""The share of the device's time that is made up for the first kernel."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Session]:
    session = session_without_spare()
    yield session
    await session.aclose()


@pytest_asyncio.fixture(loop_scope="module")
async def path(session: Session, tmp_path: Path) -> AsyncIterator[str]:
    """A file whose function `ranked` was measured."""
    settings = {"python": sys.executable, "target": "cpu", "inlayHints": {"shapes": False}}
    session.configure([str(tmp_path)], settings)
    path = str(tmp_path / "model.py")
    session.open(path, MODEL)
    await measure(session, path)
    yield path
    session.close(path)


async def measure(session: Session, path: str) -> None:
    """Let `ranked` have been measured: most of the time is that of its sort."""
    view, result = await compiled_function(session.engine, path, "ranked", complete=True)
    assert isinstance(result, LocatedFigures)
    graph = result.graph
    sorts = [kernel for kernel in graph.kernels if "sort" in kernel.name]
    assert sorts, [kernel.name for kernel in graph.kernels]
    others = [kernel for kernel in graph.kernels if kernel not in sorts]
    device = 300e-6
    kernels = [KernelTime(sorts[0].name, 1, SORTING * device)]
    kernels += [
        KernelTime(kernel.name, 1, (1 - SORTING) * device / len(others)) for kernel in others
    ]
    wall = Spread(WALL, 409e-6, 418e-6, 411e-6, 413e-6, 405e-6, 500)
    times = ProgramTimes(wall, device, 2e-6, kernels=tuple(kernels), profiled_runs=20)
    conditions = Conditions("cpu", "cpu", "0.12.0", "0.12.0", 2, 0.1, 0.0)
    measurement = Measurement(view.answer, parse("cpu"), Measured(0, times, conditions))
    session.engine.memory.measured.put((*view.answer.question.unit, "cpu"), measurement)


async def labels(session: Session, path: str) -> dict[int, list[str]]:
    """Return the labels of hints by line."""
    lines: dict[int, list[str]] = {}
    for hint in await session.hints(path, wait=True):
        lines.setdefault(hint.range.end.line, []).append(hint.label)
    return lines


async def test_the_time_of_a_call_follows_the_kernels(session: Session, path: str) -> None:
    shown = await labels(session, path)
    (total,) = shown[3]
    assert re.fullmatch(r"▣ \d+ kernels · 412 µs measured( · temp .*)? · cpu( …)?", total)
    (unmeasured,) = [label for label in shown[12] if label.startswith("▣")]
    assert "measured" not in unmeasured


async def test_lines_have_their_shares_of_the_time(session: Session, path: str) -> None:
    shown = await labels(session, path)
    shares = {
        line: label for line, texts in shown.items() for label in texts if label.startswith("⏱")
    }
    assert shares[SORT] == "⏱ 75 %"
    assert shares[PRODUCT] == "⏱ 25 %"
    assert set(shares) == {SORT, PRODUCT}


async def test_an_edit_that_changes_nothing_keeps_the_figures(session: Session, path: str) -> None:
    session.change(path, MODEL.replace("    y =", "    # the dearest line\n    y ="))
    shown = await labels(session, path)
    assert "⏱ 75 %" in shown[SORT + 1]
    assert "· 412 µs measured" in shown[3][0]


async def test_a_changed_function_marks_them_until_it_is_measured_again(
    session: Session, path: str
) -> None:
    session.change(path, EDITED)
    shown = await labels(session, path)
    assert "· ~412 µs measured" in shown[3][0]
    assert "⏱ ~25 %" in shown[PRODUCT]
    stale = [label for texts in shown.values() for label in texts if label.startswith("⏱")]
    assert all("~" in label for label in stale)
    assert any("~" not in label for label in shown[PRODUCT] if label.startswith("⊣"))
    await measure(session, path)
    assert "· 412 µs measured" in (await labels(session, path))[3][0]


async def test_undo_brings_them_back(session: Session, path: str) -> None:
    session.change(path, EDITED)
    await labels(session, path)
    session.change(path, MODEL)
    shown = await labels(session, path)
    assert "⏱ 75 %" in shown[SORT]
    assert "· 412 µs measured" in shown[3][0]


async def test_a_half_typed_line_marks_them(session: Session, path: str) -> None:
    session.change(path, MODEL.replace("norm(y @ x)", "norm(y @ x"))
    shown = await labels(session, path)
    assert "⏱ ~75 %" in shown[SORT]


async def test_tooltips_name_the_kernels_of_a_line(session: Session, path: str) -> None:
    hints = await session.hints(path, wait=True)
    (share,) = [hint for hint in hints if hint.label == "⏱ 75 %"]
    assert re.search(r"^\* kernel \d+, .*: 225 µs.*, 75 %", share.tooltip)
    (total,) = [hint for hint in hints if "412 µs" in hint.label]
    assert "| measured | share |" in total.tooltip
    assert re.search(r"\| 225 µs.* \| 75 % \|", total.tooltip)


async def test_hovers_have_both_columns(session: Session, path: str) -> None:
    hover = await session.hover(path, Position(3, 5))
    assert hover is not None
    assert "| temporaries | time | measured | compiled |" in hover.markdown
    assert re.search(r"\| cpu \|.* \| – \| 412 µs \|", hover.markdown), "no chip, no estimate"
    sort = await session.hover(path, Position(SORT, 12))
    assert sort is not None
    assert "its kernel took 225 µs, 75 % of the device's time" in sort.markdown
    session.change(path, EDITED)
    await compiled_function(session.engine, path, "ranked", complete=True)
    hover = await session.hover(path, Position(3, 5))
    assert hover is not None
    assert r"\~412 µs" in hover.markdown
    sort = await session.hover(path, Position(SORT, 12))
    assert sort is not None
    assert "took" not in sort.markdown


async def test_the_panel_has_the_times_of_its_kernels_alone(session: Session, path: str) -> None:
    panel = await session.panel(path, "ranked")
    assert panel is not None
    assert panel.measurable
    assert panel.figures is not None
    measured = panel.measured
    assert measured is not None
    assert (measured.headline, measured.stale) == ("412 µs measured", False)
    assert len(measured.kernels) == panel.figures.graph.kernel_count
    assert max(filter(None, measured.kernels)) == pytest.approx(225e-6)
    session.change(path, EDITED)
    panel = await session.panel(path, "ranked")
    assert panel is not None
    assert panel.figures is not None
    measured = panel.measured
    assert measured is not None
    assert (measured.headline, measured.stale) == ("~412 µs measured", True)
    assert measured.kernels == ()
    assert measured.notes[0] == "measured before the last edits"


async def test_the_list_of_kernels_has_their_times(session: Session, path: str) -> None:
    text = (await session.show(path, "ranked", "kernels")).text
    assert "\n412 µs measured\n" in text
    assert re.search(r"^ *kernel \d+: .*sort.*; measured 225 µs, 75 %$", text, re.MULTILINE)
    session.change(path, EDITED)
    text = (await session.show(path, "ranked", "kernels")).text
    assert "\n~412 µs measured\nmeasured before the last edits\n" in text
    assert "; measured" not in text


async def lens(session: Session, path: str) -> list[str]:
    """Return the titles of lenses that measure, once the text is traced."""
    await session.hints(path, wait=True)
    every = await session.lenses(path)
    return [each.title for each in every if each.command == "jaxsight.measure"]


async def test_lenses_and_actions_measure(session: Session, path: str) -> None:
    assert await lens(session, path) == ["measure: 412 µs", "measure"]
    session.change(path, EDITED)
    assert await lens(session, path) == ["measure again: ~412 µs", "measure"]
    on_name, inside = [
        [
            action
            for action in await session.actions(path, Range(position, position))
            if action.command == "jaxsight.measure"
        ]
        for position in (Position(3, 5), Position(SORT, 8))
    ]
    assert [action.title for action in on_name] == ["Measure ranked on cpu"]
    assert on_name[0].arguments == (path, "ranked")
    assert inside == []


async def test_nothing_is_offered_for_a_device_that_is_not_there(
    session: Session, path: str
) -> None:
    session.choose_target("cuda:h100")
    try:
        every = await session.lenses(path)
        assert not [each for each in every if each.command == "jaxsight.measure"]
        with pytest.raises(LookupError, match=r"cuda:h100 .* is no device of this machine"):
            await session.measuring.plan(path, "ranked")
    finally:
        session.choose_target("")


async def test_the_panel_in_a_browser_is_offered_on_the_name_of_a_function(
    session: Session, path: str
) -> None:
    on_name, inside = [
        [
            (action.title, action.arguments)
            for action in await session.actions(path, Range(position, position))
            if action.command == "jaxsight.openPanel"
        ]
        for position in (Position(3, 5), Position(SORT, 8))
    ]
    assert on_name == [("Show kernels of ranked in a browser", (path, "ranked"))]
    assert inside == []
