"""Write text of a workspace as Markdown without markup of its own, and read Markdown as plain text.

An editor fetches images of a hover as soon as it is shown, and runs `command:` links at a click.
Text therefore goes into Markdown through one of these functions alone: `escaped` for plain words,
`prose` for messages of ours that mark code with backticks, `span` and `fenced` for code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.text.inert import one_line, visible

_CODE = re.compile(r"(`[^`]+`)")
_MARKUP = re.compile(
    r"""[\\`*_{}\[\]<>~|!&$@]          # emphasis, links, images, HTML, entities, tables, mail
      | :(?=//) | (?<=www)\.           # addresses, which GitHub's Markdown turns into links
      | ^(?:[#+=-]|\d+(?=[.)]))        # headings, lists, rules
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*(\w*)[^`\n]*$")
_BACKTICKS = re.compile(r"`+")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]*)\)")
_SPAN = re.compile(r"(?<![\\`])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,2})(?=[^\s*])(.+?)(?<=\S)\1(?![\w*])")
"""Asterisks only: underscores are Python's."""
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_ESCAPE = re.compile(rf"\\([{re.escape(_PUNCTUATION)}])")
_SET_ASIDE = {ord(char): 0xFDD0 + number for number, char in enumerate(_PUNCTUATION)}
"""Escaped characters are mapped to noncharacters of Unicode while markup is removed."""
_BROUGHT_BACK = {aside: char for char, aside in _SET_ASIDE.items()}


def escaped(text: str) -> str:
    """Return plain text on one line, without markup."""
    return _MARKUP.sub(_escape, one_line(text).strip())


def prose(text: str) -> str:
    """Return a message with code spans as they are and all other text escaped."""
    return "\n".join(_prose(line) for line in visible(text).split("\n")).strip("\n")


def span(text: str) -> str:
    """Return code within a line."""
    line = one_line(text).strip() or " "
    ticks = "`" * (_longest(line) + 1)
    space = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{ticks}{space}{line}{space}{ticks}"


def fenced(text: str, language: str = "python") -> str:
    """Return a fenced code block; no line of the code can end it."""
    shown = visible(text)
    fence = "`" * max(3, _longest(shown) + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def _prose(line: str) -> str:
    parts = _CODE.split(line.strip().replace("\t", " "))
    return "".join(
        part if _CODE.fullmatch(part) else _MARKUP.sub(_escape, part.replace("`", "'"))
        for part in parts
    )


def _escape(match: re.Match[str]) -> str:
    """Return the escape of a character, such as `\\*`; after a list's number that of the dot."""
    return f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}"


def _longest(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def sections(markdown: str) -> Iterator[tuple[str | None, str]]:
    """Yield prose (language `None`) and fenced code in order, without empty prose."""
    language: str | None = None
    fence = ""
    lines: list[str] = []
    for line in markdown.split("\n"):
        match = _FENCE.match(line)
        if not fence and match is not None:
            yield from _section(None, lines)
            fence, language, lines = match[1], match[2], []
        elif fence and match is not None and match[1].startswith(fence) and line.endswith(match[1]):
            yield from _section(language, lines)
            fence, language, lines = "", None, []
        else:
            lines.append(line)
    yield from _section(language, lines)


def _section(language: str | None, lines: list[str]) -> Iterator[tuple[str | None, str]]:
    text = "\n".join(lines)
    if language is not None:
        yield language, text
    elif text.strip():
        yield None, text.strip()


def plain(markdown: str) -> str:
    """Return the text without its markup: code stays as it is, links keep their address."""
    return "\n\n".join(
        text if language is not None else words(text) for language, text in sections(markdown)
    )


def words(text: str, code: str = "{}", link: str = "{} ({})") -> str:
    """Return prose without its markup.

    Args:
        code: the format of a code span.
        link: the format of a link's text and address; a link that runs a command has only its text.
    """
    parts: list[str] = []
    done = 0
    for match in _SPAN.finditer(text):
        parts += [_unmarked(text[done : match.start()], link), code.format(_inside(match[2]))]
        done = match.end()
    return "".join([*parts, _unmarked(text[done:], link)])


def _inside(code: str) -> str:
    """Return a code span's text: one space at both ends separates it from its backticks."""
    return code[1:-1] if len(code) > 2 and code[0] == code[-1] == " " and "`" in code else code


def _unmarked(text: str, link: str) -> str:
    text = _ESCAPE.sub(lambda match: match[1].translate(_SET_ASIDE), text)
    text = _LINK.sub(
        lambda match: (
            match[1] if match[2].startswith("command:") else link.format(match[1], match[2])
        ),
        text,
    )
    return _EMPHASIS.sub(r"\2", text).translate(_BROUGHT_BACK)
