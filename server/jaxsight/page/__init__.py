"""The panel as one HTML file, for browsers and notebooks; what it shows is in it, or a server's.

`vscode-extension/panel/` is its source, of which `make page` builds the files in this folder; `make
lint` looks whether they are those of the source. Here its data is put into it: answers of
`jaxsight/panel` and the texts of `jaxsight/textDocumentContent`, as `Embedded` of the panel's
`messages.ts` has them. Text of others reaches the file compressed, in Base64, and must never reach
the page as markup.
"""

from __future__ import annotations

import base64
import json
import zlib
from functools import cache

PAGE = "page.html"
LAYOUT = "elk-worker.txt"
"""The layout of graphs (elkjs), compressed as the data is. The extension's own page has it, too."""


@cache
def template() -> str:
    """Return the page without data."""
    from importlib import resources

    def text(name: str) -> str:
        return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")

    layout = f'<script type="application/octet-stream" id="jaxsight-layout">{text(LAYOUT)}</script>'
    return text(PAGE).replace("<!--layout-->", layout, 1)


def embedded(data: object, title: str) -> str:
    """Return a page that has all that it shows in itself, and no way to a network.

    Args:
        data: what JSON can say: `Embedded` of `messages.ts`.
        title: of the window.
    """
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)  # as browsers read it: without a header
    packed = packer.compress(text.encode("utf-8", "backslashreplace")) + packer.flush()
    script = base64.b64encode(packed).decode("ascii")
    block = f'<script type="application/octet-stream" id="jaxsight-data">{script}</script>'
    return _titled(title).replace("<!--data-->", block, 1)


def served() -> str:
    """Return a page that asks the server that it comes from.

    It sends the editor's requests through `socket`, beside its own address, and gets notifications
    from it. It has access to no other host.
    """
    return _titled("jaxsight").replace("connect-src 'none'", "connect-src 'self'", 1)


_DARK = (
    "[data-jp-theme-light=false],.vscode-dark,.vscode-high-contrast:not(.vscode-high-contrast-light)"
    ",html[theme=dark],.dark-theme"
)
_LIGHT = "[data-jp-theme-light=true],.vscode-light,.vscode-high-contrast-light,.light-theme"
"""What JupyterLab and nbconvert, VS Code, Colab and marimo write on a page that has a theme of its
own. The scheme of a frame or a picture is that of the system for what is inside (CSS Color
Adjustment Module Level 1, `color-scheme`)."""
_STYLE = (
    ".jaxsight-frame{width:100%;border:1px solid #8884;border-radius:4px}"
    ".jaxsight-frame~.jaxsight-still{display:none}"
    f":is({_DARK}) :is(.jaxsight-frame,.jaxsight-still img){{color-scheme:dark}}"
    f":is({_LIGHT}) :is(.jaxsight-frame,.jaxsight-still img){{color-scheme:light}}"
)


def framed(page: str, title: str, still: str, width: float | None, height: float) -> str:
    """Return HTML for the output of a notebook's cell, in the notebook's theme.

    Args:
        page: what `embedded` returns, for a frame that has scripts and nothing else; it may be
            empty.
        title: of the frame.
        still: HTML for where frames are removed.
        width: pixels that it may take.
        height: pixels of the frame.
    """
    from html import escape  # its table of entities is large

    frame = ""
    if page:
        style = f"height:{height:.0f}px" + (f";max-width:{width:.0f}px" if width else "")
        frame = (
            f'<iframe class="jaxsight-frame" sandbox="allow-scripts" title="{escape(title)}" '
            f'style="{style}" srcdoc="{escape(page)}"></iframe>'
        )
    return f'<div><style>{_STYLE}</style>{frame}<div class="jaxsight-still">{still}</div></div>'


def _titled(title: str) -> str:
    from html import escape

    return template().replace("<title>jaxsight</title>", f"<title>{escape(title)}</title>", 1)
