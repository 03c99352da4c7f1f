"""What is drawn around a line that someone types: it stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser

from tests.vscode.code_server import CodeServer
from tests.vscode.project import FUSION, make
from tests.vscode.window import ACTIVE, FRAMES, Window, window

pytestmark = pytest.mark.slow

# Each frame that is drawn is looked at: those in which fewer lines match a pattern than in the
# first one are kept.
_WATCH = """
([selector, patterns]) => {
  const drawn = () => [...document.querySelectorAll(selector + ' .view-line')]
    .map((line) => line.textContent.replace(/\\u00a0/g, ' '));
  const count = (lines) => patterns.map((pattern) => lines.filter((line) => new RegExp(pattern).test(line)).length);
  const first = count(drawn());
  const watch = (window.watch = { first, lost: [], ended: false });
  const frame = () => {
    if (watch.ended) return;
    const lines = drawn();
    if (count(lines).some((now, index) => now < first[index])) watch.lost.push(lines);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
"""

HINTS = [
    r"kvec: ~?i32\[131072,2\] = kvec_mesh",
    r"dot: ~?f32\[131072\] = kvec",
    r"def f_sum_jax\(x\):▣ ~?2 kernels",
    r"def f_sum_explicit\(x\):▣ ~?\d kernel",
    r"keepdims=True\)⊣ ~?reduction",
]
"""Hints of an older text are marked by `~`; they may be marked, but not be gone."""
REST = 120
"""Frames after the last key until nothing more comes of it: VS Code asks for hints once more 0.8
seconds after it.
"""


@pytest.fixture(scope="module")
def opened(
    server: CodeServer, browser: Browser, tmp_path_factory: pytest.TempPathFactory, python: str
) -> Iterator[Window]:
    folder = tmp_path_factory.mktemp("typing") / "project"
    settings = '[tool.jaxsight]\ntarget = "cuda:h100"\n'
    make(folder, {"fusion.py": FUSION}, python=python, settings=settings)
    with window(browser, server.port, folder, folder / "fusion.py") as opened:
        yield opened


@pytest.fixture
def editor(opened: Window) -> Iterator[Window]:
    """The module as it is on disk, with all its hints."""
    opened.sees(
        "def f_sum_jax(x):▣ 2 kernels",
        "def f_sum_explicit(x):▣ 1 kernel",
        "dot: f32[131072] = ",
        "⊣ reduction",
    )
    opened.page.evaluate(FRAMES, REST)
    yield opened
    opened.revert()


def test_a_comment_moves_no_hint(editor: Window) -> None:
    new_line(editor, "import jax.numpy as |jnp|")
    with no_hint_lost(editor):
        editor.page.keyboard.type("# What follows is about fusion.", delay=60)


def test_a_line_that_is_typed_takes_no_hint_away(editor: Window) -> None:
    new_line(editor, "kvec[..., 1] * |x|[..., 1]", indent="    ")
    with no_hint_lost(editor):
        # On the way there are names that nothing has, an open bracket and a string without an end.
        editor.page.keyboard.type('more = dict(key=jnp.exp(x))["key"]', delay=60)
        editor.sees("more: f32[131072,2] = dict")


def test_an_error_takes_no_hint_away(editor: Window) -> None:
    new_line(editor, "kvec_mesh(len(|x|))", indent="    ")
    with no_hint_lost(editor):
        editor.page.keyboard.type('x["key"]', delay=60)
        editor.until(lambda: editor.squiggles("error"), "no error is underlined")


def new_line(editor: Window, after: str, indent: str = "") -> None:
    """Put the cursor on a new line, below the one with the word between `|` marks."""
    editor.click(after)
    editor.page.keyboard.press("End")
    editor.page.keyboard.insert_text(f"\n{indent}")


@contextmanager
def no_hint_lost(editor: Window) -> Iterator[None]:
    """In no frame that is drawn meanwhile, or soon after, a hint is missing."""
    editor.page.evaluate(_WATCH, [ACTIVE, HINTS])
    yield
    editor.page.evaluate(FRAMES, REST)
    watched = editor.page.evaluate("() => { window.watch.ended = true; return window.watch; }")
    assert watched["first"] == [2, 1, 1, 1, 1]
    assert not watched["lost"], "\n".join(watched["lost"][0])
