"""The map in ARCHITECTURE.md leads to what is there, and can be scanned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from tools.lint.checkout import PACKAGE, SERVER, Checkout, Offender

PAGE = "ARCHITECTURE.md"
HEAD = "## Where things are"
WIDEST = 100
"""Characters of a row: what an editor shows beside another file."""
FEWEST_ROWS = 100
"""Fewer are no map of this package, or are no longer found here."""
FEWEST_PATHS = 150


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield rows that are wide or lead nowhere."""
    found = list(rows(checkout.text(PAGE)))
    for line, row in found:
        if len(row) > WIDEST:
            yield Offender(PAGE, line, f"row of {len(row)} characters, more than {WIDEST}")
        for name, is_there in places(checkout, row):
            if not is_there:
                yield Offender(PAGE, line, f"`{name}` is not there")
    named = sum(len(paths(row)) for _, row in found)
    if len(found) <= FEWEST_ROWS or named <= FEWEST_PATHS:
        yield Offender(PAGE, 1, f"only {len(found)} rows with {named} paths below `{HEAD}`")


def rows(text: str) -> Iterator[tuple[int, str]]:
    """Yield the rows of the map with their lines."""
    is_map = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            is_map = line == HEAD
        elif is_map and line.startswith("| ") and "to see or change" not in line:
            yield number, line


def paths(row: str) -> list[str]:
    """Return the paths that the second column of a row names."""
    named = re.findall(r"`([\w./-]+)`", row.split(" | ")[1])
    return [name for name in named if "/" in name or name.endswith((".py", ".md"))]


def places(checkout: Checkout, row: str) -> list[tuple[str, bool]]:
    """Return each path, and whether there is such a file or folder.

    A module after a folder may be in it, one after a module beside it.
    """
    above = [f"{PACKAGE}/", f"{SERVER}/", ""]
    found = []
    for name in paths(row):
        there = next((base + name for base in above if checkout.exists(base + name)), None)
        found.append((name, there is not None))
        if there is not None:
            is_folder = (checkout.root / there).is_dir()
            folder = there.rstrip("/") if is_folder else str(PurePosixPath(there).parent)
            above = [f"{folder}/", *above]
    return found
