"""Hints of a function whose target changes, cannot be compiled for, or takes long to compile."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jaxsight.events import Refresh
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from tests.e2e.programs import FUSED
from tests.sessions import session_without_spare


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    session = session_without_spare(Trust(Policy.ALWAYS, allowed=["ssh://far.example"]))
    settings = {"python": sys.executable, "target": "cpu", "inlayHints": {"shapes": False}}
    session.configure([str(tmp_path)], settings)
    yield session
    await session.aclose()


async def head(session: Session, path: str) -> str:
    """Return the hint after the signature, once hints are current."""
    return next(h.label for h in await session.hints(path, wait=True) if "▣" in h.label)


@pytest.mark.slow
async def test_the_figures_of_another_target_are_no_change(
    session: Session, tmp_path: Path
) -> None:
    path = str(tmp_path / "fused.py")
    session.open(path, FUSED)
    first = await head(session, path)
    for target in ("cuda:h100", "cpu", "cuda:h100"):
        session.choose_target(target)
        label = await head(session, path)
        assert label.endswith(f"· {target.rpartition(':')[2]}"), label
        assert "→" not in label
    session.choose_target("cpu")
    assert await head(session, path) == first


async def test_a_host_that_does_not_answer_is_named_at_the_function(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"
    await asyncio.to_thread(ssh.write_text, "#!/bin/sh\necho no route to host >&2\nexit 255\n")
    await asyncio.to_thread(ssh.chmod, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = str(tmp_path / "fused.py")
    session.open(path, FUSED)
    session.choose_target("ssh://far.example/cuda:h100")
    label = await head(session, path)
    assert label.startswith("▣ ssh://far.example/cuda:h100: cannot reach far.example over ssh")


async def test_a_compile_that_takes_long_is_shown(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh = tmp_path / "ssh"  # a machine that never answers
    await asyncio.to_thread(ssh.write_text, "#!/bin/sh\nexec sleep 1000\n")
    await asyncio.to_thread(ssh.chmod, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = str(tmp_path / "fused.py")
    session.open(path, FUSED)
    session.choose_target("ssh://far.example/cuda:h100")
    async with asyncio.timeout(60):
        while True:
            labels = [hint.label for hint in await session.hints(path)]
            if "▣ ssh://far.example/cuda:h100: compiling…" in labels:
                break
            while not isinstance(await session.events.get(), Refresh):
                pass
