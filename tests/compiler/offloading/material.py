"""Optimized HLO of the programs, as XLA printed it: `cuda:h100/remat_in_scan`."""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).with_name("hlo.zip")


@cache
def texts() -> dict[tuple[str, str], str]:
    """Return the HLO by target and program."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        names = [name.removesuffix(".txt") for name in archive.namelist()]
        return {
            (target, program): archive.read(f"{target}/{program}.txt").decode()
            for target, _, program in (name.partition("/") for name in names)
        }
