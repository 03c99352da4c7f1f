"""The files that mark the root folder of a project."""

from __future__ import annotations

from pathlib import Path

from jaxsight.files import reading

MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


def is_marked(folder: Path) -> bool:
    """Return whether a folder is the root of a project."""
    return any(reading.exists(folder / marker) for marker in MARKERS)
