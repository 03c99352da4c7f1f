"""A window of VS Code in a browser, as a person uses it: keys, the mouse, and what is to be seen."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from playwright.sync_api import Browser, FrameLocator, Locator, Page, sync_playwright
from playwright.sync_api import TimeoutError as Late

from tests.vscode.code_server import PATIENCE

SIZE = {"width": 1280, "height": 800}

# Where the n-th `word` is on the screen, in the line of the active editor that holds `text`. Hints are part of the line's text, and blanks
# are drawn as U+00A0.
_PLACE = """
([text, word, selector]) => {
  const plain = (s) => s.replace(/\\u00a0/g, ' ');
  for (const line of document.querySelectorAll(selector + ' .view-line')) {
    if (!plain(line.textContent).includes(text)) continue;
    const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
    const nodes = [];
    let all = '';
    while (walker.nextNode()) {
      nodes.push([walker.currentNode, all.length]);
      all += plain(walker.currentNode.data);
    }
    const at = all.indexOf(word, all.indexOf(text));
    if (at < 0) continue;
    const node = (offset) => {
      const [found, start] = nodes.findLast(([, start]) => start <= offset);
      return [found, offset - start];
    };
    const range = document.createRange();
    range.setStart(...node(at));
    const [last, offset] = node(at + word.length - 1);
    range.setEnd(last, offset + 1);
    const box = range.getBoundingClientRect();
    return { x: box.x, y: box.y, width: box.width, height: box.height };
  }
  return null;
}
"""

_LINES = """
(selector) => [...document.querySelectorAll(selector + ' .view-line')]
  .map((line) => [parseInt(line.style.top), line.textContent.replace(/\\u00a0/g, ' ')])
  .sort((a, b) => a[0] - b[0])
  .map(([, text]) => text)
"""

# The lines of an editor that an extension has put something beside.
_MARKED = """
(selector) => {
  const marks = [...document.querySelectorAll(selector + ' .glyph-margin-widgets [class*=TextEditorDecorationType]')]
    .map((mark) => mark.style.top);
  return [...document.querySelectorAll(selector + ' .view-line')]
    .filter((line) => marks.includes(line.style.top))
    .map((line) => line.textContent.replace(/\\u00a0/g, ' '));
}
"""

# The lines of an editor that a decoration of an extension is drawn on.
_LIT = """
(selector) => {
  const lit = [...document.querySelectorAll(selector + ' .view-overlays > div')]
    .filter((line) => line.querySelector('[class*=TextEditorDecorationType]'))
    .map((line) => line.style.top);
  return [...document.querySelectorAll(selector + ' .view-line')]
    .filter((line) => lit.includes(line.style.top))
    .map((line) => line.textContent.replace(/\\u00a0/g, ' '));
}
"""

ACTIVE = ".editor-group-container.active"
Found = TypeVar("Found")

ANY = ".editor-group-container"
BESIDE = ".editor-group-container:not(.active)"


class Window:
    """What a test does and sees. Whatever waits, waits `PATIENCE` seconds at most, and no test sleeps."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def lines(self, group: str = ACTIVE) -> list[str]:
        """The lines that are drawn in an editor, hints included."""
        lines: list[str] = self.page.evaluate(_LINES, group)
        return lines

    def until(self, look: Callable[[], Found], what: str) -> Found:
        """What `look` gives as soon as that is true; it is asked again as the page goes on."""
        for _ in range(PATIENCE * 5):
            if found := look():
                return found
            self.page.wait_for_timeout(200)
        raise AssertionError(f"{what}; the editor shows:\n" + "\n".join(self.lines()))

    def sees(self, *texts: str, group: str = ACTIVE) -> list[str]:
        """The editor's lines, once each of the texts is in one of them."""
        missing: list[str] = list(texts)

        def look() -> list[str]:
            lines = self.lines(group)
            missing[:] = [text for text in texts if not any(text in line for line in lines)]
            return [] if missing else lines

        lines = self.until(look, f"{texts} is not to be seen")
        assert isinstance(lines, list)
        return lines

    def line(self, text: str) -> str:
        """The line that holds the text."""
        return next(line for line in self.sees(text) if text in line)

    def place(self, text: str, group: str = ACTIVE) -> tuple[float, float]:
        """The middle of the word between `|` marks (`return |x| + 1`) on the screen."""
        before, word, after = text.split("|")
        whole = before + word + after
        self.sees(whole, group=group)
        box = self.page.evaluate(_PLACE, [whole, word, group])
        assert box is not None, whole
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def click(self, text: str, *, times: int = 1, group: str = ACTIVE) -> None:
        """Click on the word between `|` marks; twice selects it."""
        self.page.mouse.click(*self.place(text, group), click_count=times)

    def hover(self, text: str, says: str) -> str:
        """What the hover over the word between `|` marks says, once it says that."""
        shown = self.page.locator(".monaco-hover").filter(visible=True, has_text=says).first
        for _ in range(PATIENCE // 3):
            # Hints and lenses that come late move lines: each attempt measures anew.
            x, y = self.place(text)
            self.page.mouse.move(x, y + 250)
            self.page.mouse.move(x - 2, y)
            self.page.mouse.move(x, y, steps=3)
            try:
                shown.wait_for(timeout=3000)
            except Late:
                continue
            return shown.inner_text().replace("\xa0", " ")
        seen = self.page.locator(".monaco-hover").filter(visible=True).all_inner_texts()
        raise AssertionError(f"no hover over {text} says {says!r}, but {seen}")

    def leave(self) -> None:
        """Close whatever floats."""
        self.page.mouse.move(5, SIZE["height"] - 60)
        self.page.keyboard.press("Escape")

    def replace(self, text: str, new: str) -> None:
        """Put `new` for the word between `|` marks, as a person does who selects it and types."""
        self.click(text, times=2)
        self.page.keyboard.insert_text(new)

    def _press(self, key: str, opened: Locator) -> None:
        """Press the key that opens something, again where a busy window has missed it."""
        for _ in range(PATIENCE // 10):
            self.page.keyboard.press(key)
            try:
                opened.wait_for(timeout=10_000)
            except Late:
                continue
            return
        raise AssertionError(f"{key} opens nothing")

    def _ask(self, key: str) -> None:
        """Press the key that opens a list to choose from."""
        self._press(key, self.page.locator(".quick-input-widget input[type=text]").first)

    def pick(self, text: str) -> None:
        """Choose from the list that a command has opened."""
        box = self.page.locator(".quick-input-widget input[type=text]").first
        box.wait_for()
        box.fill(text)
        row = self.page.locator(".quick-input-list .monaco-list-row", has_text=text.lstrip(">"))
        row.first.click()

    def command(self, title: str) -> None:
        """Run a command of the palette."""
        self._ask("F1")
        self.pick(f">{title}")

    def open(self, name: str) -> None:
        """Open a file by its name."""
        self._ask("Control+p")
        self.pick(name)
        self.page.locator(f"{ACTIVE} .tab.active", has_text=Path(name).name).wait_for()

    def actions(self) -> list[str]:
        """The titles of what Ctrl+. offers; it stays open."""
        rows = self.page.locator(".action-widget .monaco-list-row.action")
        self._press("Control+.", rows.first)
        return rows.all_inner_texts()

    def act(self, title: str) -> None:
        """Choose of the actions that are open."""
        row = self.page.locator(".action-widget .monaco-list-row", has_text=title).first
        box = row.bounding_box()
        assert box is not None
        # A cover lies over the menu until the mouse has moved there.
        self.page.mouse.move(box["x"] + 30, box["y"] + 4)
        self.page.mouse.move(box["x"] + 34, box["y"] + box["height"] / 2, steps=4)
        row.click()

    def panel(self) -> FrameLocator:
        """The page in our panel; a notebook has one of its own."""
        webview = self.page.frame_locator('iframe.webview[src*="jaxsight.jaxsight"]')
        return webview.frame_locator("iframe#active-frame")

    def status(self, says: str) -> str:
        """What our item among those of the language says, once it says that."""
        entry = self.page.locator(r"#status\.languageStatus")
        shown = self.page.locator(".hover-language-status").filter(has_text="jaxsight|JAX")

        def look() -> str:
            if shown_text := self._status_text():
                return shown_text if says in shown_text else ""
            entry.click()
            return ""

        found = self.until(look, f"the status does not say {says!r} but {shown.all_inner_texts()}")
        self.leave()
        return str(found)

    def _status_text(self) -> str:
        items = self.page.locator(".hover-language-status").filter(visible=True)
        return "\n".join(items.all_inner_texts()).replace("\xa0", " ")

    def toast(self, says: str) -> Locator:
        """A message that has popped up."""
        toast = self.page.locator(".notification-toast", has_text=says).first
        toast.wait_for()
        return toast

    def lit(self, group: str = ACTIVE) -> list[str]:
        """The lines of an editor that an extension has coloured."""
        lines: list[str] = self.page.evaluate(_LIT, group)
        return lines

    def marked(self) -> list[str]:
        """The lines beside which an extension has drawn something."""
        lines: list[str] = self.page.evaluate(_MARKED, ACTIVE)
        return lines

    def squiggles(self, kind: str) -> int:
        """How many lines under the text of that kind (`error`, `warning`, `info`, `hint`) are drawn."""
        return self.page.locator(f"{ACTIVE} .squiggly-{kind}").count()


def _has_folders(page: Page) -> bool:
    """Whether the workspace's folders come up in the explorer."""
    rows = page.locator(".explorer-folders-view .monaco-list-row")
    try:
        rows.first.wait_for(timeout=20_000)
    except Late:
        return False
    return True


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a screen, for windows to open in."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    assert path, "there is no Chromium: `make test-vscode` installs one"
    with sync_playwright() as playwright:
        # Its own sandbox cannot be had in containers.
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@contextmanager
def window(browser: Browser, port: int, folder: Path, file: Path | None = None) -> Iterator[Window]:
    """A window with a folder or a workspace file open, and a file of it; closed with the block."""
    kind = "workspace" if folder.suffix == ".code-workspace" else "folder"
    address = f"http://127.0.0.1:{port}/?{kind}={quote(str(folder), safe='')}"
    if file is not None:
        payload = json.dumps([["openFile", f"vscode-remote://127.0.0.1:{port}{file}"]])
        address += f"&payload={quote(payload)}"
    context = browser.new_context(viewport=SIZE, color_scheme="light")
    context.set_default_timeout(PATIENCE * 1000)
    try:
        page = context.new_page()
        page.goto(address)
        page.locator(".monaco-workbench").wait_for()
        # On a busy machine VS Code may open a workspace before it can read its file, and leave it empty: a person reloads.
        if kind == "workspace" and not _has_folders(page):
            page.reload()
        if file is not None:
            page.locator(f"{ACTIVE} .view-line").first.wait_for()
        yield Window(page)
    finally:
        context.close()


def plain(text: str) -> str:
    """Words with single blanks between them: what is drawn wraps and pads."""
    return re.sub(r"\s+", " ", text).strip()
