"""The panel in VS Code: it follows the cursor, and its kernels are the source's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, FrameLocator

from tests.vscode.code_server import CodeServer
from tests.vscode.project import FUSION, make
from tests.vscode.window import ANY, Window, window

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    return make(
        tmp_path_factory.mktemp("panel") / "project",
        {"fusion.py": FUSION},
        python=python,
        settings='[tool.jaxsight]\ntarget = "cuda:h100"\n',
    )


@pytest.fixture(scope="module")
def editor(server: CodeServer, browser: Browser, folder: Path) -> Iterator[Window]:
    with window(browser, server.port, folder, folder / "fusion.py") as opened:
        opened.sees("def f_sum_jax(x):▣ 2 kernels")
        opened.click("|def| f_sum_jax")
        opened.command("jaxsight: Show Kernels in a Panel")
        yield opened


@pytest.fixture
def panel(editor: Window) -> FrameLocator:
    """The page in the panel."""
    return editor.panel()


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


def test_the_cursor_lights_its_kernel(editor: Window, panel: FrameLocator) -> None:
    panel.get_by_role("tab", name="Graph").click()
    editor.click("kvec * |x|, axis=1", group=ANY)
    panel.locator(".node.lit", has_text="input fusion").wait_for()
    editor.click("return |x| * 2 + jnp.sum", group=ANY)
    panel.locator(".node.lit", has_text="loop fusion").wait_for()


def test_a_pinned_panel_keeps_its_function(editor: Window, panel: FrameLocator) -> None:
    panel.get_by_role("button", name="Pin").click()
    editor.click("return x * 2 + |dot|[:, None]", group=ANY)
    # The cursor is followed, but nothing of what is shown is written there.
    panel.locator(".node.lit").first.wait_for(state="detached")
    assert panel.locator("h1").inner_text() == "f_sum_jax"
    panel.get_by_role("button", name="Pin").click()
    panel.locator("h1", has_text="f_sum_explicit").wait_for()


def test_a_text_and_the_source_light_each_other(editor: Window, panel: FrameLocator) -> None:
    editor.click("kvec * |x|, axis=1", group=ANY)
    panel.locator("h1", has_text="f_sum_jax").wait_for()
    panel.get_by_role("tab", name="jaxpr").click()
    panel.locator(".line.lit", has_text="mul").first.wait_for()
    panel.locator("#page-jaxpr .line", has_text="reduce_sum").click()
    editor.until(
        lambda: any("jnp.sum(kvec" in line for line in editor.lit(ANY)), "the sum is not lit"
    )


def test_what_an_edit_changes_is_drawn_and_told(editor: Window, panel: FrameLocator) -> None:
    editor.replace("axis=1, keepdims=|True|)", "True) - x[:, :1] * jnp.max(x", group=ANY)
    panel.locator("footer", has_text="kernels 2 → 4").wait_for()
    panel.get_by_role("button", name="Compare").click()
    panel.locator("li.new").first.wait_for()
    panel.get_by_role("button", name="Compare").click()
    editor.click("kvec * |x|, axis=1", group=ANY)
    editor.revert()
    panel.locator("footer", has_text="2 kernels · 2 launches").wait_for()


def test_another_target_is_chosen_in_the_panel(panel: FrameLocator) -> None:
    panel.get_by_label("Target").select_option("cpu")
    panel.locator("footer", has_text="· cpu ·").wait_for()
    panel.get_by_label("Target").select_option("cuda:h100")
    panel.locator("footer", has_text="· h100 ·").wait_for()


def test_the_panel_comes_back_with_its_window(
    editor: Window, panel: FrameLocator, server: CodeServer, folder: Path
) -> None:
    editor.page.goto(f"http://127.0.0.1:{server.port}/?folder={quote(str(folder), safe='')}")
    panel.locator("h1", has_text="f_sum_jax").wait_for()
    panel.locator(".node.kernel").nth(1).wait_for()
