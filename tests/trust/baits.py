"""A folder whose modules have the names of what our own processes import, and tell when they ran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

NAMES = (
    "ast", "asyncio", "base64", "copy", "csv", "ensurepip", "hashlib", "importlib_metadata", "jax",
    "jaxlib", "json", "numpy", "pip", "platform", "runpy", "sitecustomize", "socket", "ssl",
    "subprocess", "tempfile", "traceback", "usercustomize", "venv", "zipfile", "zlib",
)  # fmt: skip
"""Modules of the standard library and packages that Python does not import by itself.

`re`, `enum` or `types` are imported before any code of ours.
"""


def laid(folder: Path, mark: Path, names: Sequence[str] = NAMES) -> Path:
    """Fill a folder with baits, which add a line to a file when they run; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        text = f"with open({str(mark)!r}, 'a') as mark:\n    mark.write({name!r} + '\\n')\n"
        (folder / f"{name}.py").write_text(text)
    return folder


def programs(folder: Path, mark: Path, *names: str) -> Path:
    """Fill a folder with programs that tell when they ran, and fail; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        path = folder / name
        path.write_text(f'#!/bin/sh\necho "$0" >> "{mark}"\nexit 3\n')
        path.chmod(0o755)
    return folder


def sprung(mark: Path) -> list[str]:
    """Return the baits that ran."""
    return mark.read_text().split() if mark.exists() else []
