"""A report as its reader sees it: opened from the disk in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from jaxsight.page import framed
from tests.report import sample
from tests.runs.test_page import PROGRAM
from tests.runs.test_page import page as run_page

NASTY = '</script><img src="https://example.org/x.png" onerror="document.title=1"><b>'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(sample.page(), encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Browser, file: Path) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text))
    go(page, file)
    yield page
    context.close()
    assert problems == []


def go(page: Page, file: Path, fragment: str = "") -> None:
    page.goto(f"{file.as_uri()}{fragment}")
    page.locator(".node").first.wait_for()


def chosen(page: Page) -> str:
    return page.locator(".rows .row.chosen .column-0").first.inner_text()


def test_a_kernel_lights_its_lines_and_has_an_address(opened: Page, file: Path) -> None:
    opened.locator(".rows .row", has_text="jnp.tanh").first.click()
    number = chosen(opened)
    assert opened.url.endswith(f"#p1.k{number}")
    assert "line_10" in opened.locator(".code .line.chosen").first.inner_text()
    other = opened.context.new_page()
    go(other, file, f"#p1.k{number}")
    assert chosen(other) == number


def test_a_line_lights_its_kernels(opened: Page) -> None:
    opened.locator(".code .line", has_text="line_10").click()
    assert opened.locator(".rows .row.lit").count() >= 2


def test_programs_are_side_by_side_and_compared(opened: Page) -> None:
    assert opened.locator(".figures th[scope=col]").all_inner_texts() == [
        "nested · cuda:h100",
        "before · cuda:h100",
    ]
    opened.get_by_role("button", name="Side by side").click()
    assert opened.locator(".pane").count() == 2
    first = opened.get_by_role("region", name="Program A")
    first.get_by_role("button", name="Compare with before · cuda:h100").click()
    assert "against before" in first.locator("aside").inner_text()


def test_everything_can_be_searched(opened: Page) -> None:
    search = opened.get_by_role("searchbox", name="Search the report")
    search.fill("entry ")
    hit = opened.get_by_role("link", name="· HLO:").first
    hit.press("Enter")  # a pointer would be over something else after the jump, and light that
    opened.locator("#A-page-hlo .line.chosen", has_text="ENTRY").wait_for()
    search.fill("nobody wrote this")
    opened.get_by_text("0 places").wait_for()
    search.press("Escape")
    assert opened.locator(".found").is_hidden()


def test_the_whole_page_is_reached_with_the_keyboard(opened: Page) -> None:
    reached = set()
    for _ in range(40):
        opened.keyboard.press("Tab")
        reached.add(
            opened.evaluate(
                "document.activeElement.getAttribute('aria-label') || document.activeElement.textContent.trim()"
            )
        )
    graph = next(name for name in reached if name.startswith("Kernel graph"))
    assert {"Search the report", "Side by side", "Graph", "Kernels", "Source", graph} <= reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser: Browser, file: Path, scheme: str) -> None:
    # The page's own policy would not let a test's script in.
    context = browser.new_context(color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    go(page, file)
    page.get_by_role("button", name="Side by side").click()
    page.locator(".pane .node").last.wait_for()
    page.locator(".rows .row").first.click()
    page.add_script_tag(path=sample.PANEL / "node_modules" / "axe-core" / "axe.min.js")
    found = page.evaluate("axe.run()")
    context.close()
    faults = [
        f"{fault['id']}: {fault['nodes'][0]['target']} {fault['nodes'][0]['failureSummary']}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert faults == []


def test_the_search_of_a_run_finds_what_is_in_closed_texts(
    browser: Browser, tmp_path: Path
) -> None:
    other = replace(PROGRAM, name="other", hlo="", jaxpr="{ lambda ; . let in () }")
    file = tmp_path / "run.html"
    file.write_text(run_page(PROGRAM, other), encoding="utf-8")
    page = browser.new_page()
    page.goto(file.as_uri())
    programs = page.locator("#functions article")
    search = page.get_by_role("searchbox")
    search.fill("KIND=kLoop sine_fusion")
    page.get_by_text("1 found").wait_for()
    assert programs.filter(visible=True).all_inner_texts()[0].startswith("f ")
    assert (
        page.locator("#functions summary", has_text="optimized HLO (found in 1 line)").count() == 1
    )
    search.fill("nobody wrote this")
    page.get_by_text("0 found").wait_for()
    search.fill("")
    programs.nth(1).wait_for()
    assert page.locator("summary", has_text="found in").count() == 0
    page.close()


def test_nothing_is_asked_of_a_network(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "nasty.html"
    file.write_text(sample.page(title=NASTY), encoding="utf-8")
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.split(":")[0]))
    go(page, file)
    title = page.locator("h1").first.inner_text()
    blocked = page.evaluate("fetch('https://example.org').then(() => 'answered', () => 'blocked')")
    page.close()
    assert set(asked) == {"file", "blob"}
    assert blocked == "blocked"
    assert title == NASTY


@pytest.fixture
def large(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A report of a thousand kernels, whose boxes are open."""
    file = tmp_path / "large.html"
    file.write_text(sample.page(1000), encoding="utf-8")
    assert file.stat().st_size <= sample.LARGEST
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    go(page, file)
    page.get_by_role("button", name="Expand all boxes").click()
    page.wait_for_function("document.querySelectorAll('.node.kernel').length === 1000")
    yield page
    page.close()


def test_a_large_graph_is_moved_without_new_elements(large: Page) -> None:
    node = large.locator(".node.kernel").first
    large.evaluate(
        """() => {
          window.changes = 0;
          const graph = document.querySelector('.graph');
          const all = { subtree: true, childList: true, attributes: true, characterData: true };
          new MutationObserver((seen) => { window.changes += seen.length; }).observe(graph, all);
        }"""
    )
    area = large.locator(".graph-area")
    area.hover()
    before = node.bounding_box()
    assert before is not None
    for _ in range(5):
        large.mouse.wheel(-4, 20)
    large.wait_for_function(
        """before => {
          const { x, y } = document.querySelector('.node.kernel').getBoundingClientRect();
          return Math.abs(x - before.x - 20) < 1 && Math.abs(y - before.y + 100) < 1;
        }""",
        arg=before,
    )
    assert large.evaluate("window.changes") == 0
    area.press("PageDown")
    large.wait_for_function(
        "y => document.querySelector('.node.kernel').getBoundingClientRect().y < y - 200",
        arg=before["y"],
    )


def test_of_a_large_graph_only_what_can_be_read_has_elements(large: Page) -> None:
    assert large.locator(".node text").count() == 0
    for _ in range(16):
        large.locator(".graph-area").press("+")
    large.locator(".node text").first.wait_for()
    assert large.locator(".node.kernel").count() < 200


def test_on_paper_are_all_kernels_and_the_source(opened: Page) -> None:
    opened.emulate_media(media="print")
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.locator(".printed tbody tr").count() == 2 * 19
    assert "line_10 = 10" in opened.locator(".printed pre").inner_text()
    assert opened.locator(".rows").first.is_hidden()
    pictures = opened.locator(".printed svg.graph")
    assert pictures.count() == 2
    for picture in pictures.all():
        box, page = picture.bounding_box(), opened.locator(".printed").bounding_box()
        assert box is not None
        assert page is not None
        assert 0 < box["width"] <= page["width"]
        assert picture.locator(".node").count() > 1
    assert opened.evaluate("document.documentElement.getAttribute('data-theme')") == "light"
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
    assert opened.locator(".printed tr").count() == 0


def test_what_is_printed_at_once_has_its_graphs_in_columns(browser: Browser, file: Path) -> None:
    page = browser.new_page()
    page.goto(file.as_uri())
    page.locator(".report").wait_for()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".printed svg.graph .node").count() > 2
    assert len(page.pdf()) > 10_000
    page.close()


@pytest.mark.parametrize(
    ("attributes", "dark"),
    [('data-jp-theme-light="false"', True), ('class="vscode-light"', False)],
)
def test_a_frame_in_a_notebook_has_its_theme(
    browser: Browser, tmp_path: Path, attributes: str, dark: bool
) -> None:
    file = tmp_path / "notebook.html"
    output = framed(sample.page(), "kernels of f", "<b>a table</b>", 700, 480)
    file.write_text(f"<!DOCTYPE html><body {attributes}>{output}", encoding="utf-8")
    context = browser.new_context(color_scheme="null")  # the system's: light
    page = context.new_page()
    page.goto(file.as_uri())
    panel = page.frame_locator("iframe[title='kernels of f']")
    panel.locator(".node").first.wait_for()
    theme = panel.locator("html[data-theme=dark]" if dark else "html[data-theme=light]")
    theme.wait_for(state="attached")
    assert page.get_by_text("a table").is_hidden()
    context.close()
