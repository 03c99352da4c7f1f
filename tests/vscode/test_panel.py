"""The panel in VS Code: it follows the cursor, and its kernels are the source's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, FrameLocator

from tests.vscode.code_server import CodeServer
from tests.vscode.project import FUSION, make
from tests.vscode.window import ANY, Window, window

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def editor(
    server: CodeServer, browser: Browser, tmp_path_factory: pytest.TempPathFactory, python: str
) -> Iterator[Window]:
    folder = tmp_path_factory.mktemp("panel") / "project"
    make(
        folder,
        {"fusion.py": FUSION},
        python=python,
        settings='[tool.jaxsight]\ntarget = "cuda:h100"\n',
    )
    with window(browser, server.port, folder, folder / "fusion.py") as opened:
        opened.sees("def f_sum_jax(x):▣ 2 kernels")
        opened.click("|def| f_sum_jax")
        opened.command("jaxsight: Show Kernels in a Panel")
        yield opened


@pytest.fixture
def panel(editor: Window) -> FrameLocator:
    """The page in the panel."""
    return editor.page.frame_locator("iframe.webview").frame_locator("iframe#active-frame")


def test_the_panel_draws_the_kernels_of_the_function_at_the_cursor(panel: FrameLocator) -> None:
    panel.locator("h1", has_text="f_sum_jax").wait_for()
    panel.get_by_role("option").filter(has_text="reduction").first.wait_for()


def test_a_kernel_that_is_clicked_is_lit_in_the_source(editor: Window, panel: FrameLocator) -> None:
    panel.get_by_role("option").filter(has_text="reduction").first.click()
    lit = editor.until(lambda: editor.lit(ANY), "nothing is lit")
    assert isinstance(lit, list)
    assert any("jnp.sum(kvec" in line for line in lit)


def test_the_panel_follows_the_cursor(editor: Window, panel: FrameLocator) -> None:
    editor.click("|def| f_sum_explicit", group=ANY)
    panel.locator("h1", has_text="f_sum_explicit").wait_for()


def test_a_tab_has_the_hlo(panel: FrameLocator) -> None:
    panel.get_by_role("tab", name="HLO", exact=True).click()
    panel.locator("#page-hlo", has_text="HloModule").wait_for()
