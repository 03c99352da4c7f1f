"""Kernels in VS Code, for an H100 that is not here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import CodeServer
from tests.vscode.project import FUSION, make
from tests.vscode.window import Window, window

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def editor(
    server: CodeServer, browser: Browser, tmp_path_factory: pytest.TempPathFactory, python: str
) -> Iterator[Window]:
    folder = tmp_path_factory.mktemp("kernels") / "project"
    make(
        folder,
        {"fusion.py": FUSION},
        python=python,
        settings='[tool.jaxsight]\ntarget = "cuda:h100"\n',
    )
    with window(browser, server.port, folder, folder / "fusion.py") as opened:
        yield opened


def test_totals_stand_at_the_head_and_barriers_at_their_lines(editor: Window) -> None:
    editor.sees(
        "def f_sum_jax(x):▣ 2 kernels · temp 512 KiB · h100",
        "axis=1, keepdims=True)⊣ reduction",
        "def f_sum_explicit(x):▣ 1 kernel · temp 0 B · h100",
    )


def test_hover_names_the_kernel_of_an_expression(editor: Window) -> None:
    said = editor.hover("jnp.|sum|(kvec", "fused into kernel 1 of 2")
    assert "fusion boundary: reduction" in said


def test_what_an_edit_changes_is_told(editor: Window) -> None:
    editor.replace("axis=1, keepdims=|True|)", "True) - x[:, :1] * jnp.max(x")
    editor.sees("kernels 2 → 4")
    editor.revert()
    editor.sees("def f_sum_jax(x):▣ 2 kernels · temp 512 KiB · h100")


def test_a_fix_says_what_it_saves_and_saves_it(editor: Window) -> None:
    def fix() -> str:
        editor.leave()
        editor.click("jnp.|sum|(kvec")
        return next((title for title in editor.actions() if "kernels 2 → 1" in title), "")

    # Fixes are verified in the background, and offered once they are.
    editor.act(str(editor.until(fix, "no fix is offered")))
    editor.sees("def f_sum_jax(x):▣ 1 kernel · h100 (kernels 2 → 1)")
    editor.revert()
    editor.sees("def f_sum_jax(x):▣ 2 kernels · temp 512 KiB · h100")


def test_lines_are_coloured_by_their_kernels_once_that_is_asked_for(editor: Window) -> None:
    editor.click("kvec_mesh(|len|(x))")
    assert not editor.marked()
    editor.command("jaxsight: Toggle Kernel Colours")
    marked = editor.until(editor.marked, "no line is coloured")
    assert isinstance(marked, list)
    assert any("jnp.sum(kvec" in line for line in marked)
    editor.command("jaxsight: Toggle Kernel Colours")
    editor.until(lambda: not editor.marked(), "the colours stay")


def test_another_target_is_chosen_by_command(editor: Window) -> None:
    editor.command("jaxsight: Choose Target")
    editor.pick("cpu")
    assert "· cpu" in str(editor.until(lambda: totals(editor, "cpu"), "no kernels for the CPU"))


def totals(editor: Window, target: str) -> str:
    """What stands behind the first function's head, once it is of that target."""
    heads = (line for line in editor.lines() if "def f_sum_jax" in line)
    return next((line for line in heads if f"· {target}" in line), "")
