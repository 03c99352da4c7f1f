"""*Measure* in VS Code: the lens, the question, the hints, and the panel's column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import REPOSITORY, CodeServer
from tests.vscode.pictures import Page
from tests.vscode.project import make
from tests.vscode.window import ANY, SIZE, Window, window

pytestmark = pytest.mark.slow

HOW_FAST = Page(REPOSITORY / "docs" / "how-fast.md")

# One function, so that there is one lens.
NORM = '''\
import jax.numpy as jnp


def normalized(x):
    """
    Example inputs:
        x: f32[4096, 256]
    """
    ordered = jnp.sort(x, axis=1)
    total = jnp.sum(jnp.exp(ordered), axis=1, keepdims=True)
    return ordered / total
'''
ASKS = "Measure `normalized` on this machine's CPU?"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    return make(
        tmp_path_factory.mktemp("measuring") / "project",
        {"norm.py": NORM},
        python=python,
        settings='[tool.jaxsight]\ntarget = "cpu"\n',
    )


@pytest.fixture(scope="module")
def editor(server: CodeServer, browser: Browser, folder: Path) -> Iterator[Window]:
    with window(browser, server.port, folder, folder / "norm.py") as opened:
        opened.sees("def normalized(x):▣")
        yield opened


def test_a_lens_measures_once_the_user_agrees(editor: Window) -> None:
    editor.lens("measure", asks=ASKS, answer="Measure")
    head = editor.line(" measured")
    assert re.search(r"def normalized\(x\):▣ \d kernels? · [\d.]+ (µs|ms) measured", head)
    editor.sees("⏱")


def test_the_picture_of_the_page(editor: Window, update_fixtures: bool) -> None:
    editor.page.set_viewport_size({"width": 1040, "height": 420})
    editor.page.keyboard.press("Control+b")  # no side bar
    editor.page.locator(".codelens-decoration a", has_text="cancel measuring").wait_for(
        state="detached"
    )
    HOW_FAST.take(editor, "how-fast-measured.png", update=update_fixtures)
    editor.page.set_viewport_size(SIZE)


def test_the_panel_has_a_column_of_measured_times(editor: Window) -> None:
    editor.click("|def| normalized")
    editor.command("jaxsight: Show Kernels in a Panel")
    panel = editor.panel()
    panel.locator("footer", has_text=" measured").wait_for()
    panel.get_by_role("button", name="Show or hide the list").click()
    panel.locator(".kernel-list.measured").wait_for()


def test_an_edit_marks_the_figures_until_the_panel_measures_again(editor: Window) -> None:
    editor.replace("jnp.|exp|(ordered)", "tanh", group=ANY)
    editor.sees("~", " measured", group=ANY)
    panel = editor.panel()
    panel.locator("footer", has_text="~").wait_for()
    panel.get_by_role("button", name="again").click()
    panel.locator(".kernel-list.measured").wait_for()
