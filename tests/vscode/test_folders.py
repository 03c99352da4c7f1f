"""Several folders in one window, and a notebook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import CodeServer
from tests.vscode.project import SHAPES, make, notebook
from tests.vscode.window import Window, window

pytestmark = pytest.mark.slow

DOUBLED = '''\
import jax


def doubled(x):
    """
    Example inputs:
        x: f32[3]
    """
    version = jax.__version__
    result = x * 2
    return result
'''

CELLS = (
    "import jax.numpy as jnp",
    '''\
def total(x):
    """
    Example inputs:
        x: f32[5, 7]
    """
    rows = helper(x)
    return rows''',
    """\
def helper(x):
    return jnp.sum(x, axis=1)""",
    '''\
def peak(x):
    """
    Example inputs:
        x: f32[9]
    """
    return jnp.max(x)''',
)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("folders")


@pytest.fixture(scope="module")
def editor(
    server: CodeServer, browser: Browser, scratch: Path, python: str, other_python: str
) -> Iterator[Window]:
    make(scratch / "first", {"one.py": DOUBLED}, python=python, settings=SHAPES)
    make(
        scratch / "second",
        {"two.py": DOUBLED.replace("f32[3]", "bf16[4]"), "book.ipynb": notebook(*CELLS)},
        python=other_python,
        settings=SHAPES,
    )
    workspace = scratch / "both.code-workspace"
    folders = [{"path": "first"}, {"path": "second"}]
    workspace.write_text(json.dumps({"folders": folders}), encoding="utf-8")
    with window(browser, server.port, workspace, scratch / "first" / "one.py") as opened:
        yield opened


def test_each_folder_is_traced_with_its_own_interpreter(
    editor: Window, python: str, other_python: str
) -> None:
    editor.sees("result: f32[3] = ")
    editor.bar(f"{python} (")
    editor.open("two.py")
    editor.sees("result: bf16[4] = ")
    editor.bar(f"{other_python} (")
    editor.open("one.py")
    assert f"{python} (" in editor.bar(f"{python} (")


def test_a_folder_follows_the_interpreter_that_is_chosen(
    editor: Window, scratch: Path, python: str
) -> None:
    editor.open("two.py")
    settings = scratch / "second" / ".vscode" / "settings.json"
    settings.write_text(json.dumps({"python.defaultInterpreterPath": python}), encoding="utf-8")
    editor.bar(f"{python} (")
    editor.sees("result: bf16[4] = ")


def test_cells_of_a_notebook_are_one_program(editor: Window) -> None:
    editor.open("book.ipynb")
    cells = editor.page.locator(".notebookOverlay .view-line", has_text="rows: f32[5]")
    cells.first.wait_for()


def test_the_panel_follows_the_cells_of_a_notebook(editor: Window) -> None:
    editor.open("book.ipynb")
    editor.command("jaxsight: Show Kernels in a Panel")
    panel = editor.panel()
    for name in ("total", "peak"):
        head = editor.page.locator(".notebookOverlay .view-line", has_text=f"def {name}")
        shown = panel.locator("h1", has_text=name)
        # Hints that come late move lines away from under the mouse.
        editor.until_shown(head.click, shown)
        panel.locator(".node.kernel").first.wait_for()
