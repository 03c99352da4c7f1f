"""Projects as people have them, and a Neovim that has one open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.editors.neovim import Neovim, missing, neovim
from tests.editors.project import MODEL, SETTINGS


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with settings and a module."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def editor(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    """A Neovim that was started in the project's folder."""
    if reason := missing():
        pytest.skip(reason)
    with neovim(project, tmp_path_factory.mktemp("neovim")) as editor:
        yield editor
