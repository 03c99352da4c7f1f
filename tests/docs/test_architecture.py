"""The map in ARCHITECTURE.md leads to what is there, and can be scanned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ROWS = [
    row
    for row in PAGE.partition("## Where things are")[2].partition("\n## ")[0].splitlines()
    if row.startswith("| ") and "to see or change" not in row
]
WIDEST = 100
"""Characters of a row: what an editor shows beside another file."""


def paths(row: str) -> list[str]:
    """The paths that the second column of a row names."""
    named = re.findall(r"`([\w./-]+)`", row.split(" | ")[1])
    return [name for name in named if "/" in name or name.endswith((".py", ".md"))]


def places(row: str) -> list[tuple[str, bool]]:
    """Each path, and whether there is such a file or folder.

    A module behind a folder may be in it, one behind a module beside it.
    """
    above = [ROOT / "server" / "jaxsight", ROOT]
    found = []
    for name in paths(row):
        there = next((base / name for base in above if (base / name).exists()), None)
        found.append((name, there is not None))
        if there is not None:
            above = [there if there.is_dir() else there.parent, *above]
    return found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split(" | ")[0].strip("| "))
def test_a_row_leads_to_what_is_there(row: str) -> None:
    assert [name for name, is_there in places(row) if not is_there] == []
    assert len(row) <= WIDEST


def test_there_are_rows_and_paths() -> None:
    assert len(ROWS) > 100
    assert sum(len(paths(row)) for row in ROWS) > 150


def test_a_path_that_is_gone_is_found() -> None:
    assert places("| a | `source/`, `module.py`, `gone.py` |")[1:] == [
        ("module.py", True),
        ("gone.py", False),
    ]
