"""`jaxsight explain [CODE]`: the page of a code, or all codes in a line each."""

from __future__ import annotations

from pathlib import Path

from jaxsight import reading
from jaxsight.cli import printing
from jaxsight.cli.errors import CommandError
from jaxsight.cli.printing import Printer, Table, cells, print_json
from jaxsight.findings.catalogue import CODES, Code

_PACKAGE = Path(__file__).parents[1]
_PAGES = (_PACKAGE / "findings" / "pages", _PACKAGE.parents[1] / "docs" / "diagnostics")
"""Where the pages are: in an installed package, and in the repository."""


def explain(code: str | None, *, as_json: bool) -> int:
    """Print the page of `code`, or the table of all.

    Raises:
        CommandError: there is no such code.
    """
    if code is None:
        return _all(as_json)
    known = CODES.get(code.upper())
    if known is None:
        raise CommandError(f"there is no code {code}: `jaxsight explain` lists them")
    text = page(known)
    if as_json:
        print_json({**_row(known), "page": text})
    else:
        printing.page(text)
    return 0


def page(code: Code) -> str:
    """A code's page in Markdown; where none was installed, what the table says of it."""
    for folder in _PAGES:
        if reading.is_file(file := folder / f"{code.code}.md"):
            return reading.text(file)
    return f"# {code.code}: {code.name}\n\n*{code.severity}*\n\n{code.summary}\n\n{code.url}\n"


def _row(code: Code) -> dict[str, object]:
    return {
        "code": code.code,
        "name": code.name,
        "severity": code.severity,
        "default": code.on,
        "summary": code.summary,
        "url": code.url,
    }


def _all(as_json: bool) -> int:
    if as_json:
        print_json([_row(code) for code in CODES.values()])
        return 0
    table = Table("code", "name", "severity", "", box=None, pad_edge=False)
    for code in CODES.values():
        off = "" if code.on else " (off by default)"
        table.add_row(*cells(code.code, code.name, code.severity, f"{code.summary}{off}"))
    Printer(wrap=True).print(table)
    return 0
