"""Fit texts into lines and columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def cut(text: str, most: int) -> str:
    """Return a text, or its beginning and `…` if it has more characters than `most`."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def aligned(rows: Sequence[Sequence[str]], sides: str) -> Iterator[str]:
    """Yield the rows of a table with columns of equal width.

    Args:
        rows: the texts of each row.
        sides: for each column `l` or `r`: left- or right-aligned.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            text.rjust(width) if side == "r" else text.ljust(width)
            for text, width, side in zip(row, widths, sides, strict=True)
        )
        yield "  ".join(cells).rstrip()


def camel(name: str) -> str:
    """Return `per-file-ignores` and `per_file_ignores` as `perFileIgnores`."""
    first, *words = name.replace("-", "_").split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in words)
