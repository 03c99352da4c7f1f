"""Text of a workspace made inert: control and invisible characters are shown as escapes.

File names, source, exceptions and settings are written by whoever wrote the workspace. A terminal
obeys escape sequences, an editor reorders text at bidi controls, and a line feed in a name begins a
line that a CI runner may read as a command. Such characters are shown as Python writes them in a
string (``\\x1b``, ``\\u202e``); all others stay, Greek, Chinese and emoji among them.

Every sink applies one of these functions: `visible` for text that may have several lines,
`one_line` for a part of a line (paths, names, titles), `clause` for a sentence of limited length,
`block` for lines below a heading of ours. Markdown needs more (`text/markdown.py`). Python, HLO and
JSON for programs do not pass through here: `cli.printing` says which output is exact.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from functools import cache

_ODD = re.compile(r"[^\n\t -~]")
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that move the cursor, reorder text, or have no agreed shape.

`str.isprintable` excludes them (https://docs.python.org/3/library/stdtypes.html#str.isprintable);
spaces are not among them.
"""
_EMPTY = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks without a shape.

They are Unicode's `Default_Ignorable_Code_Point` outside of `_HIDDEN`, except variation selectors,
which choose the shape of the preceding character.
"""
_EMOJI = range(0x1F000, 0x1FB00)
"""Blocks of emoji of Unicode, from Mahjong tiles to Symbols and Pictographs Extended-A (UTS #51),
including those that this Python does not know yet."""
_JOINERS = frozenset("\u200c\u200d")
_JOINED = frozenset({"Lo", "Mc", "Mn", "Sk", "So"})
"""Categories of characters around joiners: emoji, and letters of Persian, Hindi and the like."""
_MARKS = str.maketrans("“”„‟", '""""')
_BREAK = re.compile(r"\r\n|[\r\n]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")

CONTINUED = "  | "
"""The prefix of further lines of a text, below a line of ours.

Spaces are not enough: GitHub's runner strips them before it looks for a command (`TryParseV2` in
actions/runner, src/Runner.Common/ActionCommand.cs).
"""


def visible(text: str) -> str:
    """Return the text with hidden characters written as escapes; line feeds and tabs stay."""
    return _ODD.sub(_shown, text)


def one_line(text: str) -> str:
    """Return the text on one line: line feeds and tabs are written as escapes too."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def clause(text: str, most: int) -> str:
    """Return a sentence on one line of at most `most` characters, with white space collapsed."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def words(text: str) -> str:
    """Return text of a workspace in quotation marks, which it cannot end.

    Whoever reads it, an agent among them, sees whose words they are.
    """
    return f"“{text.translate(_MARKS)}”"


def lines(text: str) -> list[str]:
    """Return the lines of a text, as an editor or a terminal would divide it."""
    return visible(_BREAK.sub("\n", text.rstrip("\r\n"))).split("\n")


def block(text: str) -> str:
    """Return several lines, of which only the first begins with text of the workspace."""
    return f"\n{CONTINUED}".join(lines(text))


def printed(text: str) -> str:
    """Return text printed by user code, without colours; each state of a progress bar is a line."""
    return visible(_BREAK.sub("\n", _COLOUR.sub("", text)))


class Formatter(logging.Formatter):
    """Formats log records so that each begins exactly one line, regardless of its text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, with its traceback below."""
        return block(super().format(record))


def _shown(match: re.Match[str]) -> str:
    char = match[0]
    if char in _JOINERS and _joins(match.string, match.start()):
        return char
    return _written(char)


@cache
def _written(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN and char not in _EMPTY:
        return char
    if unicodedata.category(char) == "Cn" and ord(char) in _EMOJI:
        return char
    return ascii(char)[1:-1]


def _joins(text: str, at: int) -> bool:
    beside = (text[at - 1 : at], text[at + 1 : at + 2])
    return all(char and unicodedata.category(char) in _JOINED | {"Mn"} for char in beside)
