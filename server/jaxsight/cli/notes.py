"""Print caveats in the terminal, one line with `note:` for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jaxsight.cli.printing import Printer, styled
from jaxsight.cli.reports.text import shown_path
from jaxsight.features import caveats
from jaxsight.features.caveats import Completeness
from jaxsight.source.slicing.caveat import Caveat

_NAMED = 3
"""Functions that a line lists; the rest are counted."""


def note(path: str, caveat: Caveat, suffix: str = "") -> str:
    """Return a caveat in one line.

    For example ``note: model.py:120: `train()` was not run and may change `CFG` ``.
    """
    return said(path, caveats.line(caveat), f"{caveats.reason(caveat)}{suffix}")


def said(path: str, line: int, message: str) -> str:
    """Return a note about a line.

    For example ``note: model.py:12: `f` is not compiled for h100: it spans 8 devices``.
    """
    return f"note: {shown_path(path)}:{line}: {message}"


def print_notes(printer: Printer, path: str, found: Sequence[Caveat]) -> None:
    """Print all caveats of one function."""
    for caveat in found:
        print_note(printer, note(path, caveat))


def print_note(printer: Printer, line: str) -> None:
    """Print one line, with its first word in colour."""
    word, _, rest = line.partition(" ")
    printer.print(styled((word, "bold cyan"), f" {rest}"), soft_wrap=True)


def of_file(path: str, functions: Iterable[Completeness]) -> Iterator[str]:
    """Yield a line for each skipped statement of a file, with the functions that it may affect."""
    by_caveat: dict[Caveat, list[str]] = {}
    for each in functions:
        for caveat in each.caveats:
            by_caveat.setdefault(caveat, []).append(f"`{each.function}`")
    for caveat, names in sorted(by_caveat.items(), key=lambda item: item[0].range):
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        yield note(path, caveat, f" (may affect {', '.join(names[:_NAMED])}{more})")
