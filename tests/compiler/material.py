"""Optimized HLO of the same functions for several targets and versions of JAX, as XLA printed
it.
"""

from __future__ import annotations

import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

ARCHIVE = Path(__file__).with_name("optimized_hlo.zip")


@cache
def _archive() -> zipfile.ZipFile:
    return zipfile.ZipFile(ARCHIVE)


def text(target: str, function: str) -> str:
    """The HLO of a function: `cpu`, `f_sum_jax`."""
    return _archive().read(f"{target}/{function}.txt").decode()


def figures(target: str, function: str) -> dict[str, Any]:
    """What JAX said of memory and cost, where it was kept."""
    found: dict[str, Any] = json.loads(_archive().read(f"{target}/{function}.json"))
    return found


def names() -> list[tuple[str, str]]:
    """All (target, function)."""
    found = [name.removesuffix(".txt") for name in _archive().namelist() if name.endswith(".txt")]
    return [(target, function) for target, _, function in (name.partition("/") for name in found)]
