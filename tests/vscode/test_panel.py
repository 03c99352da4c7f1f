"""The panel in VS Code: it follows the cursor, and its kernels are the source's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, FrameLocator, Locator

from tests.vscode.code_server import CodeServer
from tests.vscode.project import FUSION, TRAINING, make
from tests.vscode.window import ANY, FRAMES, Window, window

pytestmark = pytest.mark.slow

CUT_FIGURE = re.compile(r"(≈|≥|read|written) [\d.]*\s?[A-Za-zµ]*…$")
THEMES = {
    "Default Light Modern": "vscode-light",
    "Default Dark Modern": "vscode-dark",
    "Default High Contrast": "vscode-high-contrast",
    "Default High Contrast Light": "vscode-high-contrast-light",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, python: str) -> Path:
    return make(
        tmp_path_factory.mktemp("panel") / "project",
        {"fusion.py": FUSION, "train.py": TRAINING.replace("LAYERS", "4")},
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
    editor.page.keyboard.press("Control+1")
    editor.page.keyboard.press("Control+Home")  # the end of a long line was in view
    editor.click("|def| f_sum_jax", group=ANY)
    editor.revert()
    panel.locator("footer", has_text="2 kernels · 2 launches").wait_for()


def test_another_target_is_chosen_in_the_panel(panel: FrameLocator) -> None:
    panel.get_by_label("Target").select_option("cpu")
    panel.locator("footer", has_text="· cpu ·").wait_for()
    panel.get_by_label("Target").select_option("cuda:h100")
    panel.locator("footer", has_text="· h100 ·").wait_for()


# What is drawn within the graph's part of the panel: nodes, and the texts on them.
_IN_VIEW = """
(graph) => {
  const seen = graph.getBoundingClientRect();
  const inside = (element) => {
    const box = element.getBoundingClientRect();
    const shown = box.width > 0 && box.left < seen.right && box.right > seen.left;
    return shown && box.top < seen.bottom && box.bottom > seen.top;
  };
  const high = (text) => text.getBoundingClientRect().height;
  const texts = [...graph.querySelectorAll('.node text, .label text')].filter(inside);
  return {
    nodes: [...graph.querySelectorAll('.node')].filter(inside).length,
    texts: texts.map((text) => text.textContent),
    smallest: Math.min(...texts.map(high)),
  };
}
"""


def test_a_training_step_is_drawn_in_groups_that_are_read_at_every_zoom(
    editor: Window, panel: FrameLocator
) -> None:
    editor.click("return |x| * 2 + jnp.sum", group=ANY)
    editor.open("train.py")
    editor.click("def |train_step|(params")
    panel.locator("h1", has_text="train_step").wait_for()
    panel.locator(".kernel-list .row[data-kernel]").nth(20).wait_for()
    graph = panel.locator(".graph-area")

    def names_passes() -> bool:
        # Until it is laid out, the graph of the function before is there.
        texts = graph.evaluate(_IN_VIEW)["texts"]
        passes = any("forward pass" in text or "backward pass" in text for text in texts)
        return passes and any("block 1/4" in text for text in texts)

    def is_at_rest() -> bool:
        # A zoom while boxes are laid out is a zoom at what is going away.
        before = graph.evaluate(_IN_VIEW)
        editor.page.wait_for_timeout(200)
        return graph.evaluate(_IN_VIEW) == before

    editor.until(names_passes, "no pass or block is named in the graph")
    for press in ("Expand all boxes", "Fit the graph", "Collapse all boxes", "Expand all boxes"):
        panel.get_by_role("button", name=press).click()
        editor.until(is_at_rest, "the graph goes on moving")
        for zoomed in range(4):
            editor.page.evaluate(FRAMES, 4)
            shown = graph.evaluate(_IN_VIEW)
            assert shown["nodes"] > 0, (press, zoomed)
            if zoomed == 0 or press == "Fit the graph":
                assert len(shown["texts"]) > 0, (press, zoomed)
                assert shown["smallest"] >= 6, (press, zoomed)
            cut = [text for text in shown["texts"] if CUT_FIGURE.search(text)]
            assert not cut, (press, zoomed)
            graph.press("-" if press == "Fit the graph" else "+")


def test_a_kernel_of_the_list_is_chosen_in_the_graph_and_lit_in_the_source(
    editor: Window, panel: FrameLocator
) -> None:
    panel.get_by_placeholder("Filter").fill("backward attention matmul")
    panel.get_by_role("button", name="≈ time").click()
    rows = panel.locator(".kernel-list .row[data-kernel]")
    rows.first.click()
    panel.locator(".graph-area .chosen").first.wait_for()
    panel.locator(".crumbs button", has_text="attention").wait_for()
    lit = editor.until(lambda: editor.lit(ANY), "nothing is lit")
    assert any(" @ " in line or "einsum" in line for line in lit)


def test_a_bar_has_the_share_of_the_time(panel: FrameLocator) -> None:
    panel.get_by_placeholder("Filter").fill("")
    panel.get_by_role("button", name="share").click()
    cells = panel.locator(".kernel-list .row[data-kernel] .column-6")
    first, last = cells.first, cells.nth(15)
    assert re.fullmatch(r"\d+(\.\d)?%", first.inner_text())
    assert _share(first) > _share(last) > 0


def _share(cell: Locator) -> float:
    """How long a bar is, of its cell."""
    shown = cell.evaluate("(cell) => getComputedStyle(cell).backgroundImage")
    found = re.search(r"([\d.]+)%", shown)
    assert found is not None, shown
    return float(found[1])


# The least contrast of a text with what it stands on, as WCAG counts it.
_CONTRAST = """
() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d');
  const luminance = (colour) => {
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const part = (value) => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const { data } = canvas.getImageData(0, 0, 1, 1);
    const [red, green, blue] = [...data].map((each) => part(each / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [a, b] = [luminance(one), luminance(other)].sort((x, y) => y - x);
    return (a + 0.05) / (b + 0.05);
  };
  const ground = getComputedStyle(document.body).backgroundColor;
  // Nodes that are seen from afar have no text.
  const nodes = [...document.querySelectorAll('.graph .node:not(.open):has(text)')].slice(0, 20);
  const drawn = nodes.map((node) => [
    getComputedStyle(node.querySelector('text')).fill,
    getComputedStyle(node.querySelector('rect')).fill,
  ]);
  const written = [...document.querySelectorAll('.kernel-list .row span, footer, header label')]
    .slice(0, 60).map((each) => [getComputedStyle(each).color, ground]);
  const all = [...drawn, ...written].map(([text, under]) => contrast(text, under));
  return { least: Math.min(...all), ground, nodes: nodes.length };
}
"""


def test_the_panel_has_the_colours_of_each_theme(
    editor: Window, panel: FrameLocator, folder: Path
) -> None:
    file = folder / ".vscode" / "settings.json"
    settings = file.read_text(encoding="utf-8")
    grounds = {}

    def has_texts() -> bool:
        panel.locator(".graph-area").press("+")
        return panel.locator(".graph .node:not(.open) text").count() > 0

    editor.until(has_texts, "nodes have no texts, however near they are")
    for theme, kind in THEMES.items():
        changed = {**json.loads(settings), "workbench.colorTheme": theme}
        file.write_text(json.dumps(changed), encoding="utf-8")
        body = panel.locator(f"body.{kind}")
        body.wait_for()
        shown = body.evaluate(_CONTRAST)
        assert shown["nodes"] > 0
        assert shown["least"] >= 3, (theme, shown)
        grounds[theme] = shown["ground"]
    file.write_text(settings, encoding="utf-8")
    assert len(set(grounds.values())) >= 3, grounds


def test_the_memory_that_is_alive_leads_to_expressions(editor: Window, panel: FrameLocator) -> None:
    panel.get_by_role("tab", name="Memory").click()
    panel.locator(".reading", has_text="the peak").wait_for()
    panel.locator(".temporary", has_text="jax.nn.gelu").first.click()
    editor.until(lambda: any("jax.nn.gelu" in line for line in editor.lit(ANY)), "gelu is not lit")
    panel.get_by_role("tab", name="HLO", exact=True).click()
    panel.locator("#page-hlo .line.chosen").first.wait_for()
    assert "metadata=" not in panel.locator("#page-hlo").inner_text()
    panel.get_by_role("tab", name="Graph").click()


def test_the_panel_comes_back_with_its_window(
    editor: Window, panel: FrameLocator, server: CodeServer, folder: Path
) -> None:
    editor.page.goto(f"http://127.0.0.1:{server.port}/?folder={quote(str(folder), safe='')}")
    panel.locator("h1", has_text="train_step").wait_for()
    panel.locator(".kernel-list .row[data-kernel]").nth(20).wait_for()
