"""*Open Profile*: the report as a document, and hints at the lines of the run."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.session import Session
from tests.profiles.made import PROGRAMS, MadePlane, gpu_plane, host_plane, write
from tests.quiet import QUIET
from tests.sessions import session_without_spare

MODEL = """\
def loss(params, x):
    # made for line numbers
    h = x + params["bias"]
    return h @ params["w"]
"""
LOGS = Path("logs") / "plugins" / "profile" / "2026_11_27_10_00_00"


@pytest_asyncio.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    session = session_without_spare()
    session.configure([str(tmp_path)], {**QUIET, "python": sys.executable})
    (tmp_path / "model.py").write_text(MODEL)
    write(tmp_path / LOGS / "host.xplane.pb", PROGRAMS, host_plane(3), gpu_plane(0, 3))
    yield session
    await session.aclose()


async def shown(session: Session, path: Path) -> dict[int, str]:
    """Return the hints of the open profile by line."""
    hints = await session.hints(str(path), wait=True)
    return {hint.range.start.line: hint.label for hint in hints if hint.label.startswith("⏱")}


async def open_profile(session: Session, path: Path) -> str | None:
    return await session.open_profile(str(path), lambda text: None, asyncio.Event())


async def test_lines_show_their_share_of_the_time(session: Session, tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    session.open(str(model), MODEL)
    assert await shown(session, model) == {}

    report = await open_profile(session, tmp_path / "logs")

    assert await shown(session, model) == {2: "⏱ 25 %", 3: "⏱ 53 %"}
    assert report is not None
    text = (await session.show(str(tmp_path / "logs"), report, "profile")).text
    assert text.startswith("⏱ 3 steps of 1.00 ms · GPU:0 busy 78 % · 2.37 ms in kernels\n")
    assert "  1.26 ms   53 %      9  model.py:4" in text


async def test_hints_follow_their_lines_and_leave_edited_ones(
    session: Session, tmp_path: Path
) -> None:
    model = tmp_path / "model.py"
    session.open(str(model), MODEL)
    await open_profile(session, tmp_path / "logs")

    session.change(str(model), f"import jax\n\n{MODEL}")
    assert await shown(session, model) == {4: "⏱ 25 %", 5: "⏱ 53 %"}
    session.change(str(model), MODEL.replace("h = x", "h = 2 * x"))
    assert await shown(session, model) == {3: "⏱ 53 %"}
    session.change(str(model), "")
    assert await shown(session, model) == {}


async def test_a_file_that_was_changed_after_the_run_has_no_hints(
    session: Session, tmp_path: Path
) -> None:
    model = tmp_path / "model.py"
    session.open(str(model), MODEL)
    os.utime(model, (1_700_000_000, 1_700_000_000))
    start = 1_690_000_000 * 10**9
    environment = MadePlane("Task Environment", own={"profile_start_time": start})
    file = write(tmp_path / "old.xplane.pb", PROGRAMS, gpu_plane(0, 3), environment)

    await open_profile(session, file)
    assert await shown(session, model) == {}


async def test_what_cannot_be_opened_says_why(session: Session, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LookupError, match="no profile in"):
        await open_profile(session, tmp_path / "empty")
    with pytest.raises(LookupError, match="is not open; open it again"):
        await session.show(str(tmp_path / "logs"), "report", "profile")


async def test_reading_ends_when_the_user_cancels(session: Session, tmp_path: Path) -> None:
    stop = asyncio.Event()
    stop.set()
    logs = str(tmp_path / "logs")
    assert await session.open_profile(logs, lambda text: None, stop) is None
    with pytest.raises(LookupError):
        await session.show(logs, "report", "profile")
