"""Python in other texts: the cells of notebooks, the code blocks of Markdown, doctests.

All other lines become empty where a text has lines, so that a line of the program is that line of
the text.
"""

from __future__ import annotations

import re

from jaxsight.text.magics import notebook_text

_FENCE = re.compile(r"[ \t]{0,3}(?P<fence>`{3,}|~{3,})[ \t]*(?P<language>[\w+-]*)[^\n]*")
_PYTHON = frozenset({"python", "py", "python3", "pycon"})
_PROMPT = re.compile(r"[ \t]*(?:>>>|\.\.\.)(?: (?P<code>.*))?")


def of_notebook(text: str) -> str:
    """Return the Python cells of a Jupyter notebook, without magics; empty if it has none.

    The editor's text of a notebook has them already.
    """
    return notebook_text(text) if text.lstrip().startswith("{") else text


def of_markdown(text: str) -> str:
    """Return the Python code blocks of a Markdown text; empty if it has none."""
    lines: list[str] = []
    fence, is_python = "", False
    for line in text.splitlines():
        mark = _FENCE.fullmatch(line)
        if fence and line.strip() and line.strip() == fence[0] * len(line.strip()):
            closes = len(line.strip()) >= len(fence)
            fence, is_python = ("", False) if closes else (fence, is_python)
            lines.append("")
        elif not fence and mark is not None:
            fence, is_python = mark["fence"], mark["language"].lower() in _PYTHON
            lines.append("")
        else:
            lines.append(line if fence and is_python else "")
    code = "\n".join(lines).rstrip()
    return of_doctests(code) if ">>>" in code else code


def of_doctests(text: str) -> str:
    """Return the statements of the doctests in a text; empty if it has none."""
    if ">>>" not in text:
        return ""
    lines: list[str] = []
    goes_on = False
    for line in text.splitlines():
        prompt = _PROMPT.fullmatch(line)
        goes_on = prompt is not None and (goes_on or line.lstrip().startswith(">>>"))
        lines.append((prompt["code"] or "") if goes_on and prompt is not None else "")
    return "\n".join(lines).rstrip()
