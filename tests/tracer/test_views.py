"""Interpreters that packages register by entry point, in the terminal and through a session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.model import Hover
from jaxsight.features.named_function import view_of
from jaxsight.session import Session
from jaxsight.source.text import Position, Range
from tests.quiet import QUIET
from tests.sessions import session_without_spare
from tests.terminal import SERVER, jaxsight, sessions

__all__ = ["sessions"]

VIEWS = """\
def equations(jaxpr):
    return f"{len(jaxpr.eqns)} equations"

def itself(jaxpr):
    return jaxpr

def broken(jaxpr):
    raise ValueError("no idea")
"""
MODEL = '''\
import jax.numpy as jnp

def f(x):
    """
    Example inputs:
        x: f32[3]
    """
    return jnp.sin(x) * 2
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file, and beside it a folder of an installed package with interpreters."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "model.py").write_text(MODEL)
    metadata = folder / "site" / "my_views-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-views\nVersion: 1.0\n")
    names = ("equations", "itself", "broken")
    lines = [f"{name} = my_views:{name}" for name in names]
    (metadata / "entry_points.txt").write_text("\n".join(["[jaxsight.interpreters]", *lines]))
    (folder / "site" / "my_views.py").write_text(VIEWS)
    return folder


def show(folder: Path, what: str, *options: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(SERVER), str(folder / "site")])
    return jaxsight("show", "model.py:f", "--what", what, *options, cwd=folder, PYTHONPATH=path)


@pytest.mark.slow
def test_terminal_shows_a_function_by_an_interpreter(folder: Path) -> None:
    assert show(folder, "equations").stdout == "2 equations\n"
    assert show(folder, "itself").stdout == show(folder, "jaxpr").stdout
    shown = json.loads(show(folder, "equations", "--json").stdout)
    assert (shown["interpreter"], shown["text"]) == ("equations", "2 equations")


def test_terminal_tells_of_an_interpreter_that_fails_or_is_not_there(folder: Path) -> None:
    failed = show(folder, "broken")
    assert failed.returncode == 2
    assert "f cannot be shown with interpreter broken: ValueError: “no idea" in failed.stderr
    assert "my_views.py, line 8" in failed.stderr
    missing = show(folder, "shape")
    assert missing.returncode == 2
    assert "unknown jaxpr interpreter shape" in missing.stderr
    assert "(available: broken, equations, itself); did you mean shapes?" in missing.stderr


@pytest_asyncio.fixture
async def session(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Session]:
    monkeypatch.setenv("PYTHONPATH", str(folder / "site"))
    session = session_without_spare()
    session.configure([str(folder)], {**QUIET, "python": sys.executable})
    session.open(str(folder / "model.py"), MODEL)
    yield session
    await session.aclose()


async def test_editor_is_offered_the_interpreters(session: Session, folder: Path) -> None:
    path, name = str(folder / "model.py"), Position(2, 4)
    await view_of(session.engine, path, "f")
    hover = await session.hover(path, name)
    assert isinstance(hover, Hover)
    assert (
        "jaxpr interpreters in this environment: `broken`, `equations`, `itself`" in hover.markdown
    )
    actions = await session.actions(path, Range(name, name))
    offered = [action for action in actions if action.kind.endswith(".view")]
    assert [action.title for action in offered] == [
        "Show f with interpreter broken",
        "Show f with interpreter equations",
        "Show f with interpreter itself",
    ]
    assert offered[1].arguments == (path, "f", "view", "equations")
    assert (await session.show(path, "f", "equations")).text == "2 equations"
    jaxpr = await session.show(path, "f", "itself")
    assert [link.range.start.line for link in jaxpr.links if link.range] == [7]
    with pytest.raises(LookupError, match="with interpreter broken: ValueError: “no idea"):
        await session.show(path, "f", "broken")
