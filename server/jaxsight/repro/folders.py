"""Folders for cases and repros below the user's cache folder."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

from jaxsight.files.private import cache_folder

KEPT = 32
"""How many folders of a kind are kept."""


def new_folder(kind: str) -> Path:
    """Return a new folder of a kind, and remove the oldest ones.

    Raises:
        LookupError: it cannot be created.
    """
    above = cache_folder(kind)
    if above is None:
        raise LookupError("no folder for the repro: set XDG_CACHE_HOME or HOME")
    try:
        above.mkdir(0o700, parents=True, exist_ok=True)
        for oldest in sorted(above.iterdir())[:-KEPT]:
            shutil.rmtree(oldest, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=above))
    except OSError as error:
        raise LookupError(f"no folder for the repro: {error}") from error
