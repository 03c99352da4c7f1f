"""Fixes as JSON, with ruff's keys: rows and columns count from 1, ends are exclusive."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.features.fixes.verifier import Fix
from jaxsight.source.text import Edit, Position


def fix_record(fix: Fix) -> dict[str, object]:
    """Return a fix; `unsafe` ones need `--unsafe-fixes`."""
    return {
        "applicability": "safe" if fix.safe else "unsafe",
        "message": fix.title,
        "edits": edit_records(fix.edits),
    }


def edit_records(edits: Sequence[Edit]) -> list[dict[str, object]]:
    """Return edits of a text, each with its range and the text that replaces it."""
    return [
        {
            "content": edit.text,
            "location": location(edit.range.start),
            "end_location": location(edit.range.end),
        }
        for edit in edits
    ]


def location(position: Position) -> dict[str, int]:
    """Return a position."""
    return {"row": position.line + 1, "column": position.column + 1}
