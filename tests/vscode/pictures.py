"""Pictures of the editor in a page of Markdown: taken here, of the size that they had, with what
their texts say in them.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

from tests.vscode.code_server import REPOSITORY
from tests.vscode.window import Window

PICTURE = re.compile(r"!\[(?P<says>[^\[\]]+)\]\((?P<file>pictures/[\w-]+\.png)\)")
LARGEST = 150 * 1024


class Page:
    """A page whose pictures lie beside it, in `pictures/`."""

    def __init__(self, file: Path) -> None:
        text = file.read_text(encoding="utf-8")
        self.folder = file.parent / "pictures"
        self._says = {Path(each["file"]).name: each["says"] for each in PICTURE.finditer(text)}

    @property
    def pictures(self) -> set[str]:
        """The names of its pictures."""
        return set(self._says)

    def take(self, editor: Window, name: str, *, update: bool) -> None:
        """Take a picture; what the page says of it, between `“` and `”`, must be on the screen.

        With `update`, it replaces the page's own.
        """
        phrases = re.findall("“([^”]+)”", self._says[name])
        assert phrases, f"the text of {name} quotes nothing of it"
        editor.page.wait_for_function("() => document.fonts.status === 'loaded'")
        for phrase in phrases:
            editor.until(lambda phrase=phrase: phrase in screen(editor), f"no {phrase!r}")  # type: ignore[misc]
        kept = self.folder / name
        taken = kept if update else REPOSITORY / "reports" / "vscode" / name
        taken.parent.mkdir(parents=True, exist_ok=True)
        editor.page.screenshot(path=taken)
        assert taken.stat().st_size <= LARGEST
        assert dimensions(taken) == dimensions(kept)


def screen(editor: Window) -> str:
    """The text on the screen, that of our panel included."""
    shown = editor.page.locator("body").inner_text()
    frames = editor.page.locator('iframe.webview[src*="jaxsight.jaxsight"]')
    if frames.count():
        shown += editor.panel().locator("body").inner_text()
    return shown.replace("\xa0", " ")


def dimensions(picture: Path) -> tuple[int, int]:
    """Width and height that a PNG names."""
    width, height = struct.unpack(">II", picture.read_bytes()[16:24])
    return width, height
