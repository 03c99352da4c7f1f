"""The pictures of the extension's README, taken here: they are of the size that they had, and what
their texts say is in them.

`pytest tests/vscode/test_pictures.py --update-fixtures` takes them anew.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import REPOSITORY, CodeServer
from tests.vscode.pictures import Page
from tests.vscode.project import ATTENTION, FUSION, SHAPES, make
from tests.vscode.window import ANY, BESIDE, Window, window

pytestmark = pytest.mark.slow

README = Page(REPOSITORY / "vscode-extension" / "README.md")
SIZE = {"width": 1040, "height": 560}


@pytest.fixture(scope="module")
def editor(
    server: CodeServer, browser: Browser, tmp_path_factory: pytest.TempPathFactory, python: str
) -> Iterator[Window]:
    scratch = tmp_path_factory.mktemp("pictures")
    make(
        scratch / "kernels",
        {"fusion.py": FUSION},
        python=python,
        settings='[tool.jaxsight]\ntarget = "cuda:h100"\n',
    )
    make(scratch / "shapes", {"attention.py": ATTENTION}, python=python, settings=SHAPES)
    workspace = scratch / "examples.code-workspace"
    workspace.write_text('{"folders": [{"path": "kernels"}, {"path": "shapes"}]}', encoding="utf-8")
    with window(browser, server.port, workspace, scratch / "kernels" / "fusion.py") as opened:
        opened.page.set_viewport_size(SIZE)
        opened.sees("def f_sum_jax")
        opened.page.keyboard.press("Control+b")  # no side bar
        yield opened


def test_kernels(editor: Window, update_fixtures: bool) -> None:
    editor.sees("2 kernels · temp", "1 kernel · temp")
    README.take(editor, "kernels.png", update=update_fixtures)


def test_panel(editor: Window, update_fixtures: bool) -> None:
    editor.click("|def| f_sum_jax")
    editor.command("jaxsight: Show Kernels in a Panel")
    panel = editor.page.frame_locator("iframe.webview").frame_locator("iframe#active-frame")
    panel.get_by_role("option").filter(has_text="reduction").first.click()
    editor.until(lambda: editor.lit(ANY), "nothing is lit")
    README.take(editor, "panel.png", update=update_fixtures)
    editor.page.keyboard.press("Control+1")
    editor.command("Close Editors in Other Groups")
    editor.page.locator("iframe.webview").wait_for(state="detached")


def test_hover(editor: Window, update_fixtures: bool) -> None:
    editor.open("attention.py")
    editor.sees("scores: f32[4,8,128,128] = ")
    editor.hover("def |attention|(q", "dot_general")
    README.take(editor, "hover.png", update=update_fixtures)
    editor.leave()


def test_sourcerize(editor: Window, update_fixtures: bool) -> None:
    editor.open("attention.py")
    editor.click("def |attention|(q")
    editor.act(next(title for title in editor.actions() if "Sourcerize" in title))
    editor.sees("lax.dot_general(", group=BESIDE)
    editor.click("jax.nn.|softmax|(")
    editor.until(lambda: editor.lit(BESIDE), "nothing is lit")
    README.take(editor, "sourcerize.png", update=update_fixtures)


def test_the_readme_has_each_picture_that_there_is() -> None:
    assert README.pictures == {file.name for file in README.folder.iterdir()}
