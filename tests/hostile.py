"""Texts by which a workspace may speak for jaxsight, and what must be true of whatever is
shown."""

from __future__ import annotations

import re
import unicodedata

TEXTS = {
    "title": "\x1b]0;pwned\x07",
    "clear": "\x1b[2J\x1b[H",
    "link": "\x1b]8;;https://evil.example/\x1b\\click\x1b]8;;\x1b\\",
    "c1": "\x9b2J\x9d0;pwned\x9c\x85",
    "carriage": "good\rpwned\x08\x08\x7f\x00",
    "newline": "one\n::error::pwned\r\n  ::warning file=a.py::pwned\n##[error]pwned",
    "separators": "one\u2028::error::two\u2029three\x0b\x0cfour",
    "bidi": "\u202eabc\u202c\u2066d\u2069\u200f\u061c",
    "invisible": "a\u200bb\u2060c\ufeffd\u00ade\u3164f\u115fg\U000e0041\ufffe",
    "surrogate": "\udc9b\ud800x\udfff",
    "rich": "[/x][bold red][link=https://evil.example]pwned",
    "image": "![x](https://evil.example/x.png)",
    "command": "[x](command:jaxsight.show?%5B%5D) $(error)",
    "reference": "[x]: https://evil.example\n\n[x] https://evil.example www.evil.example a@evil.example",
    "html": "<img src=x onerror=alert(1)><a href='command:x'>x</a><!-- &lt; -->",
    "fence": "```\n[x](command:y)\n~~~~~\n`````\n<b>",
    "code": "`a``b` ``` [x](command:y) `",
    "blocks": "# title\n* item\n1. one\n> quote\n| a | b |\n|---|---|\n---\n    code",
    "sarif": "[0](1) {0} \\[",
    "azure": "##vso[task.setvariable variable=x]pwned ##teamcity[buildStop]",
}

EVERYTHING = " ".join(TEXTS.values())

HARMLESS = {
    "greek": "λ_α = ∂ψ/∂t ≈ ½",
    "wide": "模型/全角　名前.py",
    "combining": "e\u0301 ñ",
    "emoji": "👩\u200d💻 👍🏽 ❤\ufe0f 🇩🇪",
    "persian": "می\u200cخواهم",
    "hindi": "क्\u200dष",
    "private": "no-break\u00a0space",
    "windows": r"C:\new\x1b.py",
}

_SHOWN_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5")
_JOINERS = frozenset("\u200c\u200d")
_FROM_RICH = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|2K|1A)")
"""Colours, and what a spinner does to its own line."""


def hidden(text: str) -> list[str]:
    """The characters of a text that move a cursor, reorder, or do not show; line feeds are none."""
    return [
        f"U+{ord(char):04X}"
        for char in text
        if char != "\n"
        and char not in _JOINERS
        and (
            unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Co")
            or char in _SHOWN_FILLERS
            or ord(char) & 0xFFFE == 0xFFFE
        )
    ]


def on_terminal(output: str) -> str:
    """What a terminal got, without what rich itself writes."""
    return _FROM_RICH.sub("", output).replace("\r\n", "\n").replace("\r", "")


def commands(output: str) -> list[str]:
    """The lines that GitHub's, Azure's or TeamCity's runner would obey (`ActionCommand.TryParse` of
    actions/runner).
    """
    return [
        line
        for line in re.split(r"[\r\n]", output)
        if line.lstrip().startswith("::") or re.search(r"##(?:vso|teamcity)?\[", line)
    ]
