"""How names are spelled in JSON for editors."""

from __future__ import annotations


def camel(name: str) -> str:
    """Return `per-file-ignores` and `per_file_ignores` as `perFileIgnores`."""
    first, *words = name.replace("-", "_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in words)
