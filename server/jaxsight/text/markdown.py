"""Write text of a workspace as Markdown without markup of its own.

An editor fetches images of a hover as soon as it is shown, and runs `command:` links at a click.
Text therefore goes into Markdown through one of these functions alone: `escaped` for plain words,
`prose` for messages of ours that mark code with backticks, `span` and `fenced` for code.
`commented` and `table_cell` are for comments on GitHub and GitLab.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from jaxsight.text.inert import one_line, visible

_CODE = re.compile(r"(`[^`]+`)")
_MARKUP = re.compile(
    r"""[\\`*_{}\[\]<>~|!&$@]          # emphasis, links, images, HTML, entities, tables, mail
      | :(?=//) | (?<=www)\.           # addresses, which GitHub's Markdown turns into links
      | ^(?:[#+=-]|\d+(?=[.)]))        # headings, lists, rules
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BACKTICKS = re.compile(r"`+")
_BAR = re.compile(r"(?<!\\)\|")


def escaped(text: str) -> str:
    """Return plain text on one line, without markup."""
    return _MARKUP.sub(_escape, one_line(text).strip())


def prose(text: str) -> str:
    """Return a message with code spans as they are and all other text escaped."""
    return "\n".join(_prose(line) for line in visible(text).split("\n")).strip("\n")


def commented(text: str) -> str:
    """Return a message as `prose` does, which mentions nobody: bots write `@<!-- -->name`."""
    return _outside_code(prose(text), lambda part: part.replace(r"\@", "@<!-- -->"))


def table_cell(text: str) -> str:
    """Return Markdown as a cell of a table, whose bars end a cell in code, too."""
    return _BAR.sub(r"\|", text).replace("\n", "<br>")


def markdown_table(head: Sequence[str], *rows: Sequence[str]) -> str:
    """Return a table of plain texts, each on one line."""
    lines = [f"| {' | '.join(map(escaped, row))} |" for row in (head, *rows)]
    lines.insert(1, f"|{'---|' * len(head)}")
    return "\n".join(lines)


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
    return _outside_code(
        line.strip().replace("\t", " "), lambda part: _MARKUP.sub(_escape, part.replace("`", "'"))
    )


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts = _CODE.split(text)
    return "".join(part if _CODE.fullmatch(part) else change(part) for part in parts)


def _escape(match: re.Match[str]) -> str:
    """Return the escape of a character, such as `\\*`; after a list's number that of the dot."""
    return f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}"


def _longest(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)
