"""What a person sees in VS Code: the real editor, the packaged extension, real JAX."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import CodeServer
from tests.vscode.project import ATTENTION, SHAPES, make
from tests.vscode.window import BESIDE, Window, plain, window

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    folder = tmp_path_factory.mktemp("editing") / "project"
    return make(folder, {"attention.py": ATTENTION}, python=python, settings=SHAPES)


@pytest.fixture(scope="module")
def opened(server: CodeServer, browser: Browser, folder: Path) -> Iterator[Window]:
    with window(browser, server.port, folder, folder / "attention.py") as opened:
        yield opened


@pytest.fixture
def editor(opened: Window) -> Iterator[Window]:
    """The module as it is on disk, in the only editor."""
    opened.sees("scores: f32[4,8,128,128] = ")
    yield opened
    opened.leave()
    if opened.page.locator(BESIDE).count():
        opened.command("Close Editors in Other Groups")
        opened.page.locator(BESIDE).wait_for(state="detached")
    opened.revert()


def test_the_status_tells_the_jax_and_why_that_python(editor: Window, python: str) -> None:
    said = editor.bar("JAX 0.")
    assert python in said
    assert "the interpreter chosen in the editor" in said


def test_hover_on_a_function_tells_shapes_and_jaxpr(editor: Window) -> None:
    said = editor.hover("def |attention|(q", "dot_general")
    assert "q: f32[4,128,8,64]" in said
    assert "f32[4,128,8,64]" in said.partition("->")[2]


def test_hover_on_an_expression_tells_what_it_is(editor: Window) -> None:
    assert "scores: f32[4,8,128,128]" in editor.hover("softmax(|scores|, axis", "f32[4,8,128,128]")


@pytest.mark.smoke
def test_a_hint_follows_an_edit_that_changes_a_shape(editor: Window) -> None:
    editor.replace("q, k, v: |f32|[4, 128", "bf16")
    editor.sees("weights: bf16[4,8,128,128] = ")


def test_a_tracing_error_is_underlined_at_its_expression(editor: Window) -> None:
    editor.until(lambda: editor.squiggles("error"), "no error is underlined")
    said = editor.hover("if x.|sum|() > 0", "JX401")
    assert "jaxsight" in said
    assert "bool" in said


def test_example_inputs_are_added_by_a_code_action(editor: Window) -> None:
    editor.click("def |clipped|(x")
    titles = editor.actions()
    title = next(title for title in titles if "Add example inputs" in title)
    editor.act(title)
    editor.sees("norm: f32[")


def test_a_lens_chooses_another_example_set(editor: Window) -> None:
    editor.lens("example inputs (1 of 2)", asks="Select the example inputs", answer="decode")
    editor.sees("scores: f32[4,8,1,128] = ")
    editor.lens("(2 of 2)", asks="Select the example inputs", answer="(unnamed)")
    editor.sees("scores: f32[4,8,128,128] = ")


def test_sourcerize_opens_beside_the_source_and_lights_up_what_belongs_together(
    editor: Window,
) -> None:
    editor.click("def |attention|(q")
    titles = editor.actions()
    editor.act(next(title for title in titles if "Sourcerize" in title))
    editor.sees("lax.dot_general(", group=BESIDE)
    editor.click('jnp.|einsum|("bqhd,bkhd->bhqk"')
    lit = "\n".join(editor.until(lambda: editor.lit(BESIDE), "nothing is lit"))
    assert "dot_general(" in lit
    assert "exp(" not in lit
    editor.click("jax.nn.|softmax|(")
    editor.until(lambda: any("exp(" in line for line in editor.lit(BESIDE)), "softmax is not lit")


def test_a_tracer_that_was_killed_is_replaced(editor: Window, server: CodeServer) -> None:
    killed = server.processes("boot.py", "tracer")
    assert killed
    for process in killed:
        process.kill()
    editor.replace("q, k, v: |f32|[4, 128", "f16")
    editor.sees("weights: f16[4,8,128,128] = ")


def test_the_command_restarts_the_server(editor: Window, server: CodeServer) -> None:
    def servers() -> set[int]:
        return {process.pid for process in server.processes("bundled/start.py")}

    # VS Code keeps that of a window that was just closed for a while.
    before = servers()
    editor.command("jaxsight: Restart")
    editor.until(lambda: servers() - before and before - servers(), "no new server")
    editor.replace("q, k, v: |f32|[4, 128", "f16")
    editor.sees("weights: f16[4,8,128,128] = ")


def test_problems_are_listed(editor: Window) -> None:
    listed = editor.page.locator(".markers-panel", has_text="JX401")
    editor.until_shown(lambda: editor.page.keyboard.press("Control+Shift+m"), listed)
    assert "attention.py" in plain(listed.inner_text())
    editor.page.keyboard.press("Control+Shift+m")
