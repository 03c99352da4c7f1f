"""A window of VS Code in a browser, as a person uses it: keys, the mouse, and what is to be
seen.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from playwright.sync_api import (
    Browser,
    BrowserContext,
    FrameLocator,
    Locator,
    Page,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as Late

from tests.vscode.code_server import PATIENCE

SIZE = {"width": 1280, "height": 800}

# Where the n-th `word` is on the screen, in the line of the active editor that holds `text`. Hints
# are part of the line's text, and blanks are drawn as U+00A0.
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
    const seen = line.closest('.editor-scrollable').getBoundingClientRect();
    return {
      x: box.x, y: box.y, width: box.width, height: box.height,
      left: seen.left, right: seen.right, top: seen.top, bottom: seen.bottom,
    };
  }
  return null;
}
"""

# Frames pass, in each of which whatever is drawn may move.
FRAMES = """
(count) => new Promise((passed) => {
  const frame = () => count-- > 0 ? requestAnimationFrame(frame) : passed();
  frame();
})
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

# Where the cursors are on the screen, or the selections, in the editor that has the focus.
_DRAWN = """
(selector) => [...document.querySelectorAll(selector)].map((drawn) => {
  const box = drawn.getBoundingClientRect();
  return { x: box.x, y: box.y, width: box.width, height: box.height };
})
"""
CURSORS = ".monaco-editor.focused .cursors-layer .cursor"
SELECTIONS = ".monaco-editor.focused .view-overlays .selected-text"

ACTIVE = ".editor-group-container.active"
Found = TypeVar("Found")

ANY = ".editor-group-container"
BESIDE = ".editor-group-container:not(.active)"


class Window:
    """What a test does and sees.

    Whatever waits, waits `PATIENCE` seconds at most, and no test sleeps.
    """

    def __init__(self, page: Page) -> None:
        self.page = page

    def lines(self, group: str = ACTIVE) -> list[str]:
        """The lines that are drawn in an editor, hints included."""
        lines: list[str] = self.page.evaluate(_LINES, group)
        return lines

    def until(self, look: Callable[[], Found], what: str) -> Found:
        """What `look` gives as soon as that is true; it is asked again as the page goes on."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
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

    def _box(self, text: str, group: str) -> dict[str, float] | None:
        """Where the word between `|` marks (`return |x| + 1`) is drawn now, if it is."""
        before, word, after = text.split("|")
        box: dict[str, float] | None = self.page.evaluate(
            _PLACE, [before + word + after, word, group]
        )
        return box

    def place(self, text: str, group: str = ACTIVE) -> tuple[float, float]:
        """The middle of the word between `|` marks, scrolled into view, once that stays where it
        is.
        """
        self.sees(text.replace("|", ""), group=group)

        def resting() -> dict[str, float] | None:
            before = self._box(text, group)
            self.page.evaluate(FRAMES, 2)
            if before is None or before != self._box(text, group):
                return None
            right, down = _out_of_view(before)
            if not right and not down:
                return before
            self.page.mouse.move(
                (before["left"] + before["right"]) / 2, (before["top"] + before["bottom"]) / 2
            )
            self.page.mouse.wheel(right, down)
            return None

        box = self.until(resting, f"{text} moves")
        assert box is not None
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def _act_on(
        self, text: str, group: str, act: Callable[[float, float], None], drawn: str, slack: float
    ) -> None:
        """Act on the word between `|` marks until what is then drawn lies on it.

        Hints and lenses that come late move lines, also between measuring and acting.
        """

        def lies() -> bool:
            word = self._box(text, group)
            boxes = self.page.evaluate(_DRAWN, drawn)
            return word is not None and len(boxes) == 1 and _within(boxes[0], word, slack)

        def attempt() -> bool:
            act(*self.place(text, group))
            for _ in range(10):
                self.page.evaluate(FRAMES, 2)
                if lies():
                    return True
            self.page.wait_for_timeout(1000)
            return lies()

        self.until(attempt, f"no click reaches {text}")

    def click(self, text: str, *, group: str = ACTIVE) -> None:
        """Put the cursor on the word between `|` marks with a click."""
        self._act_on(text, group, self.page.mouse.click, CURSORS, slack=0)

    def select(self, text: str, *, group: str = ACTIVE) -> None:
        """Select the word between `|` marks with a double click."""
        self._act_on(text, group, self.page.mouse.dblclick, SELECTIONS, slack=3)

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

    def replace(self, text: str, new: str, *, group: str = ACTIVE) -> None:
        """Put `new` for the word between `|` marks, as a person does who selects it and types."""
        self.select(text, group=group)
        self.page.keyboard.insert_text(new)

    def revert(self) -> None:
        """Have the file of the active editor as it is on disk."""
        self.command("File: Revert File")
        self.page.locator(f"{ACTIVE} .tab.active.dirty").wait_for(state="detached")

    def until_shown(self, act: Callable[[], None], shown: Locator) -> None:
        """Do what brings something up, again where a busy window has missed it."""
        for _ in range(PATIENCE // 10):
            act()
            try:
                shown.wait_for(timeout=10_000)
            except Late:
                continue
            return
        raise AssertionError(f"{shown} does not come up")

    def _press(self, key: str, opened: Locator) -> None:
        """Press the key that opens something."""
        self.until_shown(lambda: self.page.keyboard.press(key), opened)

    def _ask(self, key: str) -> None:
        """Press the key that opens a list to choose from."""
        self._press(key, self.page.locator(".quick-input-widget input[type=text]").first)

    def pick(self, text: str) -> None:
        """Choose from the list that a command has opened.

        Rows move while the list is filtered, so what is chosen is the one that has the focus.
        """
        widget = self.page.locator(".quick-input-widget")
        box = widget.locator("input[type=text]").first
        rows = widget.locator(".quick-input-list .monaco-list-row")
        wanted = rows.filter(has_text=text.lstrip(">"))
        focused = wanted.and_(self.page.locator(".focused"))
        box.wait_for()

        def ready() -> bool:
            if box.input_value() != text:
                box.fill(text)
            try:
                wanted.first.wait_for(timeout=5000)
            except Late:
                # A window that is still opening knows few commands and files: the list is made
                # again.
                box.fill("")
                return False
            if not focused.count():
                self.page.keyboard.press("ArrowDown")
            return focused.count() == 1 and box.input_value() == text

        self.until(ready, f"{text} is not in the list")
        self.page.keyboard.press("Enter")

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

        def chosen() -> bool:
            box = row.bounding_box() if row.count() else None
            if box is None:
                # The menu closes when something else takes the focus.
                self.actions()
                return False
            # A cover lies over the menu until the mouse has moved there.
            self.page.mouse.move(box["x"] + 30, box["y"] + 4)
            self.page.mouse.move(box["x"] + 34, box["y"] + box["height"] / 2, steps=4)
            try:
                row.click(timeout=5000)
            except Late:
                return False
            return True

        self.until(chosen, f"{title} is not to be chosen")

    def panel(self) -> FrameLocator:
        """The page in our panel; a notebook has one of its own."""
        webview = self.page.frame_locator('iframe.webview[src*="jaxsight.jaxsight"]')
        return webview.frame_locator("iframe#active-frame")

    def bar(self, says: str) -> str:
        """What our item of the status bar says, with all that its tooltip has, once it says that."""
        item = self.page.locator(".statusbar-item[id*=jaxsight] a").first

        def look() -> str:
            label = str(item.get_attribute("aria-label") or "") if item.count() else ""
            return label if says in label else ""

        return str(self.until(look, f"the status bar does not say {says!r}"))

    def status(self, says: str) -> str:
        """What our items among those of the language say, once they say that."""
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

    def lens(self, title: str, *, asks: str, answer: str) -> None:
        """Click on a lens, and answer the message that it brings up."""
        lens = self.page.locator(".codelens-decoration a", has_text=title)
        button = self.page.locator(".notification-toast", has_text=asks).get_by_role(
            "button", name=answer
        )
        self.until_shown(lens.click, button.first)
        button.first.click()

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
        """How many lines under the text of that kind (`error`, `warning`, `info`, `hint`) are
        drawn.
        """
        return self.page.locator(f"{ACTIVE} .squiggly-{kind}").count()


def _out_of_view(box: Mapping[str, float]) -> tuple[float, float]:
    """How far an editor is to be scrolled, to the right and down, until it shows a word."""
    bar = 15  # Pixels that a scroll bar covers.
    right = max(0, box["x"] + box["width"] + bar - box["right"]) or min(0, box["x"] - box["left"])
    down = max(0, box["y"] + box["height"] + bar - box["bottom"]) or min(0, box["y"] - box["top"])
    return right, down


def _within(box: Mapping[str, float], word: Mapping[str, float], slack: float) -> bool:
    """Whether something lies on a word: a cursor in it, or, with `slack` pixels, a selection of all
    of it.
    """
    middle = box["y"] + box["height"] / 2
    if not word["y"] <= middle <= word["y"] + word["height"]:
        return False
    start, end = box["x"], box["x"] + box["width"]
    first, last = word["x"], word["x"] + word["width"]
    if slack:
        return abs(start - first) <= slack and abs(end - last) <= slack
    return first - 2 <= start <= last + 2


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
    assert path, "there is no Chromium: `make test-all PART=vscode` installs one"
    with sync_playwright() as playwright:
        # Its own sandbox cannot be had in containers.
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@contextmanager
def window(
    browser: Browser | BrowserContext, port: int, folder: Path, file: Path | None = None
) -> Iterator[Window]:
    """A window with a folder or a workspace file open, and a file of it; closed with the block.

    What VS Code remembers of a workspace is in the context of the browser, of its own by default.
    """
    kind = "workspace" if folder.suffix == ".code-workspace" else "folder"
    address = f"http://127.0.0.1:{port}/?{kind}={quote(str(folder), safe='')}"
    if file is not None:
        payload = json.dumps([["openFile", f"vscode-remote://127.0.0.1:{port}{file}"]])
        address += f"&payload={quote(payload)}"
    with contextlib.ExitStack() as stack:
        context = stack.enter_context(fresh(browser)) if isinstance(browser, Browser) else browser
        page = context.new_page()
        stack.callback(page.close)
        page.goto(address)
        page.locator(".monaco-workbench").wait_for()
        # On a busy machine VS Code may open a workspace before it can read its file, and leave it
        # empty: a person reloads.
        if kind == "workspace" and not _has_folders(page):
            page.reload()
        if file is not None:
            page.locator(f"{ACTIVE} .view-line").first.wait_for()
        yield Window(page)


@contextmanager
def fresh(browser: Browser) -> Iterator[BrowserContext]:
    """A browser in which VS Code has not run before."""
    context = browser.new_context(viewport=SIZE, color_scheme="light")
    context.set_default_timeout(PATIENCE * 1000)
    try:
        yield context
    finally:
        context.close()


def plain(text: str) -> str:
    """Words with single blanks between them: what is drawn wraps and pads."""
    return re.sub(r"\s+", " ", text).strip()
