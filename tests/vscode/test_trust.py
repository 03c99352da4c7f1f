"""A folder that nobody has trusted yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import CodeServer, code_server
from tests.vscode.project import SHAPES, make
from tests.vscode.window import Window, window

pytestmark = pytest.mark.slow

MODULE = '''\
from pathlib import Path

FACTOR = Path(__file__).with_name("it_ran").write_text("2")


def doubled(x):
    """
    Example inputs:
        x: f32[3]
        y: f32[3]
    """
    result = x * FACTOR
    return result
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    folder = tmp_path_factory.mktemp("trust") / "project"
    return make(folder, {"module.py": MODULE}, python=python, settings=SHAPES)


@pytest.fixture(scope="module")
def cautious(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CodeServer]:
    with code_server(tmp_path_factory.mktemp("cautious"), asks_for_trust=True) as running:
        yield running


@pytest.fixture(scope="module")
def editor(cautious: CodeServer, browser: Browser, folder: Path) -> Iterator[Window]:
    with window(browser, cautious.port, folder, folder / "module.py") as opened:
        yield opened


def test_nothing_of_an_untrusted_folder_runs_until_it_is_trusted(
    editor: Window, folder: Path, python: str, cautious: CodeServer
) -> None:
    editor.status("no code runs until you trust this workspace")
    # What the text alone tells is served, so the server has read the file.
    editor.until(lambda: editor.squiggles("error") + editor.squiggles("warning"), "no finding")
    assert not (folder / "it_ran").exists()
    assert not cautious.processes(python)

    editor.command("Workspaces: Manage Workspace Trust")
    editor.page.get_by_role("button", name="Trust", exact=True).first.click()
    editor.open("module.py")
    editor.replace("        |y|: f32[3]", "# y")
    editor.sees("result: f32[3] = ")
    assert (folder / "it_ran").exists()
