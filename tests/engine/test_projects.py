"""Which project a file belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.engine.events import Status
from jaxsight.engine.projects import Projects


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    for folder in ("first", "second/inner", ".git"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "second" / "inner" / "pyproject.toml").touch()
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
        {},
        trusted=True,
        editor_python={},
        editor_by_root={},
    )
    assert Path(projects.of(str(workspace / file)).root) == workspace / root


def test_without_a_workspace_a_library_belongs_to_the_project_of_the_working_folder(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = workspace / "env" / "site-packages" / "optax"
    library.mkdir(parents=True)
    projects = Projects()
    projects.configure([], {}, trusted=True, editor_python={}, editor_by_root={})
    monkeypatch.chdir(workspace / "second" / "inner")
    assert Path(projects.of(str(library / "a.py")).root) == workspace / "second" / "inner"
    monkeypatch.chdir(library)
    assert Path(projects.of(str(library / "b.py")).root) == workspace


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
