"""Text of a workspace made inert: what would be obeyed, or not be seen, is shown as an escape.

File names, source, exceptions and settings are written by whoever wrote the workspace. A terminal
obeys escape sequences, an editor reorders text at bidi controls, and a line feed in a name begins
a line that a CI runner may read as a command. Such characters are shown as Python writes them in
a string (``\\x1b``, ``\\u202e``); all others stay, Greek, Chinese and emoji among them.

Every sink applies one of these functions: `visible` where a text may have several lines,
`one_line` where it is part of a line (paths, names, titles), `clause` where it is a sentence of
limited length, `block` where lines follow a heading of ours. Markdown needs more
(`engine.markdown`). What is Python, HLO or JSON for programs is not touched here: `cli.printing`
says which output is exact.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from functools import cache

_ODD = re.compile(r"[^\n\t -~]")
_HIDDEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
"""Unicode's categories of what moves the cursor, reorders, or has no agreed shape: those that
`str.isprintable` excludes
(https://docs.python.org/3/library/stdtypes.html#str.isprintable), without the spaces."""
_EMPTY = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Letters and marks without a shape: Unicode's `Default_Ignorable_Code_Point` that is not in
`_HIDDEN`, without variation selectors: they choose the shape of the character before."""
_EMOJI = range(0x1F000, 0x1FB00)
"""Where Unicode puts new emoji, also those that this Python does not know yet."""
_JOINERS = frozenset("\u200c\u200d")
_JOINED = frozenset({"Lo", "Mc", "Mn", "Sk", "So"})
"""What joiners stand between: emoji, and letters of scripts that need them (Persian, Hindi)."""
_BREAK = re.compile(r"\r\n|[\r\n]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")

CONTINUED = "  | "
"""What further lines of a text begin with, below a line of ours.

Spaces alone would not do: GitHub's runner strips them before it looks for a command (`TryParseV2`
in actions/runner, src/Runner.Common/ActionCommand.cs).
"""


def visible(text: str) -> str:
    """The text with hidden characters written as escapes; line feeds and tabs stay."""
    return _ODD.sub(_shown, text)


def one_line(text: str) -> str:
    """The same on one line: line feeds and tabs are written as escapes too."""
    return visible(text).replace("\n", r"\n").replace("\t", r"\t")


def clause(text: str, most: int) -> str:
    """A sentence on one line of at most `most` characters; white space of any length is a space."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def lines(text: str) -> list[str]:
    """The lines of a text, wherever an editor or a terminal would begin one."""
    return visible(_BREAK.sub("\n", text.rstrip("\r\n"))).split("\n")


def block(text: str) -> str:
    """Several lines, of which none but the first begins with text of the workspace."""
    return f"\n{CONTINUED}".join(lines(text))


def printed(text: str) -> str:
    """What user code prints: each state of a progress bar is a line, colours are dropped."""
    return visible(_BREAK.sub("\n", _COLOUR.sub("", text)))


class Formatter(logging.Formatter):
    """Formats records of a log so that each begins exactly one line, whatever it quotes."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's line, and its traceback below."""
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
