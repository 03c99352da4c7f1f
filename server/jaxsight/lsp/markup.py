"""Markdown for clients that show none: the same words as plain text."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
_CODE = re.compile(r"(`+)(.+?)\1")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2})(?=[^\s*])(.+?)(?<=\S)\1(?![\w*])")
"""Asterisks only: underscores are Python's."""
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~])")


def plain(markdown: str) -> str:
    """The text without its markup: fences and emphasis go, code stays as it is, links keep their address."""
    lines: list[str] = []
    in_code = False
    for line in markdown.splitlines():
        if _FENCE.match(line):
            in_code = not in_code
        elif in_code:
            lines.append(line)
        else:
            lines.append(_plain_line(line))
    return "\n".join(lines).strip("\n")


def _plain_line(line: str) -> str:
    parts: list[str] = []
    done = 0
    for code in _CODE.finditer(line):
        parts += [_prose(line[done : code.start()]), code[2]]
        done = code.end()
    parts.append(_prose(line[done:]))
    return "".join(parts)


def _prose(text: str) -> str:
    text = _LINK.sub(lambda m: m[1] if m[2].startswith("command:") else f"{m[1]} ({m[2]})", text)
    text = _EMPHASIS.sub(r"\2", text)
    return _ESCAPE.sub(r"\1", text)
