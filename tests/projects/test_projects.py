"""Which project a file belongs to."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

import psutil
import pytest

from jaxsight.events import Status
from jaxsight.projects.projects import SPARES, Projects
from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.quiet import QUIET


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for folder in ("first", "second/inner", ".git"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "second" / "inner" / "pyproject.toml").touch()
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "root"),
    [
        ("first/a.py", "first"),
        ("second/a.py", "second"),
        ("second/inner/package/a.py", "second/inner"),
        ("elsewhere/a.py", "."),
        ("env/lib/python3.11/site-packages/optax/a.py", "second"),
        ("first/.venv/lib/python3.11/site-packages/optax/a.py", "first"),
    ],
    ids=[
        "workspace folder",
        "second folder",
        "marked folder inside",
        "outside: nearest marker",
        "library: first folder",
        "library in a project's environment",
    ],
)
def test_a_file_belongs_to_the_nearest_project(workspace: Path, file: str, root: str) -> None:
    projects = Projects()
    projects.configure(
        [str(workspace / "second"), str(workspace / "first")],
        {"python": str(workspace / "env")},
        trusted=True,
        editor_python={},
        editor_by_root={},
    )
    assert Path(projects.of(str(workspace / file)).root) == workspace / root


def test_a_command_of_the_terminal_keeps_no_spare_tracer(workspace: Path) -> None:
    for spares in (0, 1):
        projects = Projects(spares=spares)
        project = projects.of(str(workspace / "first" / "a.py"))
        projects.used(project)
        assert projects.may_keep_spare(project) == bool(spares)


def test_without_a_workspace_a_library_belongs_to_the_project_of_the_working_folder(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = workspace / "env" / "lib" / "site-packages" / "optax"
    library.mkdir(parents=True)
    projects = Projects()
    settings = {"python": str(workspace / "env")}
    projects.configure([], settings, trusted=True, editor_python={}, editor_by_root={})
    monkeypatch.chdir(workspace / "second" / "inner")
    assert Path(projects.of(str(library / "a.py")).root) == workspace / "second" / "inner"
    monkeypatch.chdir(library)
    assert Path(projects.of(str(library / "b.py")).root) == workspace


def test_a_folder_that_is_named_like_that_of_libraries_is_none(workspace: Path) -> None:
    planted = workspace / "second" / "site-packages"
    planted.mkdir(parents=True)
    projects = Projects()
    first = workspace / "first"
    projects.configure([str(first)], {}, trusted=True, editor_python={}, editor_by_root={})
    assert Path(projects.of(str(planted / "a.py")).root) != first


def test_a_project_that_is_not_trusted_says_so_when_a_file_of_it_is_opened(workspace: Path) -> None:
    projects = Projects()
    projects.configure(
        [str(workspace / "first")], {}, trusted=False, editor_python={}, editor_by_root={}
    )
    projects.of(str(workspace / "first" / "a.py"))
    projects.of(str(workspace / "first" / "b.py"))
    told = projects.events.get_nowait()
    assert isinstance(told, Status)
    assert (Path(told.root), told.state) == (workspace / "first", "untrusted")
    assert projects.events.empty()


TEXT = '''
def f(x):
    """
    Example inputs:
        x: f32[4]
    """
    return x
'''


def tracers() -> list[psutil.Process]:
    """Those below this process."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended meanwhile
            line = " ".join(process.cmdline())
            if "boot.py tracer" in line and "guardian" not in line:
                found.append(process)
    return found


async def until_tracers(count: int) -> None:
    async with asyncio.timeout(60):
        while len(tracers()) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.slow
@pytest.mark.alone
async def test_projects_share_few_spares_and_end_their_processes_when_idle(tmp_path: Path) -> None:
    session = Session(Projects(idle=0.1))
    roots = [tmp_path / name for name in ("a", "b", "c", "d")]
    for root in roots:
        root.mkdir()
        (root / "pyproject.toml").touch()
    session.configure([str(root) for root in roots], QUIET)
    paths = [str(root / "main.py") for root in roots]
    try:
        for factor in ("2.0", "3.0"):  # another text needs a trace
            for path in paths:
                session.open(path, TEXT.replace("return x", f"return x * {factor}"))
                hover = await session.hover(path, Position(1, 4))
                assert hover is not None
                assert "f32[4]" in hover.markdown
            await until_tracers(len(roots) + SPARES)
            for path in paths:
                session.close(path)
            await until_tracers(0)
    finally:
        await session.aclose()
