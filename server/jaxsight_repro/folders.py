"""Folders for cases and repros below the user's cache folder."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from jaxsight.files.private import cache_folder

KEPT = 32
"""How many folders of a name are kept: a choice. Fewer would drop cases that a user still reads or
reduces; with arrays in them, many more would fill the disk."""


def new_folder(name: str) -> Path:
    """Return a new folder in one of this name, and remove the oldest ones.

    Raises:
        LookupError: it cannot be created.
    """
    above = cache_folder(name)
    if above is None:
        raise LookupError("no folder for the repro: set XDG_CACHE_HOME or HOME")
    try:
        above.mkdir(0o700, parents=True, exist_ok=True)
        for oldest in sorted(above.iterdir())[:-KEPT]:
            shutil.rmtree(oldest, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=above))
    except OSError as error:
        raise LookupError(f"no folder for the repro: {error}") from error
