"""The files of jaxsight itself, which a checkout changes without another version number."""

from __future__ import annotations

import os
from pathlib import Path

from jaxsight.files.texts import Version, stamp_of

_CODE = Path(__file__).parents[3]


def own_code() -> list[tuple[str, Version]]:
    """Return the name and the stamp of each file."""
    found: list[tuple[str, Version]] = []
    for folder, folders, files in os.walk(_CODE):
        folders.sort()
        found += (
            (file, stamp_of(os.path.join(folder, file)))  # noqa: PTH118 - 900 files
            for file in sorted(files)
            if file.endswith(".py")
        )
    return found
