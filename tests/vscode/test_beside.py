"""VS Code with basedpyright and ruff beside jaxsight, and with a jaxpr beside the source."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import REPOSITORY, code_server
from tests.vscode.project import SHAPES, make
from tests.vscode.window import ANY, BESIDE, Window, window

pytestmark = pytest.mark.slow

SERVERS = REPOSITORY / ".venvs" / "servers" / "bin"
EXTENSION = Path(__file__).with_name("servers-extension")

MODULE = f'''\
import os
import jax.numpy as jnp


def normed(x):
    """
    Example inputs:
        x: f32[4, 8]
    """
    total = jnp.sum(x, axis=1)
    low, high = jnp.min(total), jnp.max(total)
    far = x + {" " * 200}jnp.cosh(x)
    return (total - low) / (high - low) + far.sum()
'''

# How far an editor is scrolled to the right.
_SCROLLED = """
(selector) => [...document.querySelectorAll(selector + ' .lines-content')]
  .map((lines) => -parseFloat(lines.style.left || '0'))
"""


@pytest.fixture(scope="module")
def editor(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, python: str
) -> Iterator[Window]:
    assert SERVERS.exists(), f"{SERVERS} is missing: `make test-all PART=vscode` makes it"
    scratch = tmp_path_factory.mktemp("beside")
    extension = _bundled(scratch / "servers-extension")
    folder = make(
        scratch / "project",
        {"model.py": MODULE},
        python=python,
        settings=SHAPES,
        **{"python.pythonPath": python},
    )
    os.environ["SERVERS_FOR_TESTS"] = str(SERVERS)
    try:
        with (
            code_server(scratch / "vscode", extensions=[extension]) as server,
            window(browser, server.port, folder, folder / "model.py") as opened,
        ):
            yield opened
    finally:
        del os.environ["SERVERS_FOR_TESTS"]


def _bundled(folder: Path) -> Path:
    """The extension that starts the servers, with the client library in it."""
    shutil.copytree(EXTENSION, folder)
    modules = REPOSITORY / "vscode-extension" / "node_modules"
    subprocess.run(
        [
            REPOSITORY / ".venvs" / "node" / "bin" / "node",
            modules / "esbuild" / "bin" / "esbuild",
            EXTENSION / "extension.js",
            "--bundle",
            "--platform=node",
            "--external:vscode",
            "--allow-overwrite",
            f"--outfile={folder / 'extension.js'}",
        ],
        env={**os.environ, "NODE_PATH": str(modules)},
        check=True,
        capture_output=True,
    )
    return folder


def test_shapes_stand_at_the_end_of_the_line_beside_types(editor: Window) -> None:
    editor.sees("total: Array = jnp.sum(", "axis=1)f32[4]")
    line = editor.line("low, high")
    assert line.endswith("low: f32[], high: f32[]")


def test_a_hover_shows_types_and_shapes_each_once(editor: Window) -> None:
    said = editor.hover("return (|total| - low)", "total: f32[4]")
    assert said.count("total: f32[4]") == 1
    assert said.count("(variable) total: Array") == 1
    assert said.count("jaxsight") == 1
    editor.leave()
    said = editor.hover("import |os|", "imported but unused")
    assert "jaxsight" not in said
    editor.leave()


def test_the_cursor_in_a_jaxpr_does_not_scroll_the_source_sideways(editor: Window) -> None:
    editor.sees("axis=1)f32[4]")
    editor.click("def |normed|(x)")
    editor.command("jaxsight: Show Jaxpr of Function at Cursor")
    # Once it is clicked, it is the active one, and the source is beside it.
    editor.click("= |cosh|", group=ANY)
    editor.until(lambda: any("far" in line for line in editor.lit(BESIDE)), "the source is not lit")
    assert editor.page.evaluate(_SCROLLED, BESIDE) == [0]


def test_an_equation_leads_to_its_expression_and_its_operands_to_theirs(editor: Window) -> None:
    def cursor() -> str:
        return str(editor.page.locator(r"#status\.editor\.selection").inner_text())

    editor.click("= |reduce_sum|[axes=(1,)]", group=ANY)
    editor.page.keyboard.press("End")
    editor.until(lambda: cursor().startswith("Ln 2,"), cursor())
    editor.page.keyboard.press("F12")
    editor.until(lambda: cursor().startswith("Ln 1,"), "no definition of the operand")
    editor.click("= |cosh|", group=ANY)
    editor.page.keyboard.press("F12")
    editor.until(lambda: cursor().startswith("Ln 12,"), "no expression of the equation")
