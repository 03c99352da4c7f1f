"""Some of many names or descriptions on one line; further ones are counted."""

from __future__ import annotations

from collections.abc import Sequence


def some(texts: Sequence[str], most: int, last: str = ", ") -> str:
    """Return `a, b` or, with more than `most` texts, the first of them: `a, b and 3 more`.

    Args:
        texts: the texts.
        most: how many are listed.
        last: what stands before the last one if all are listed, such as ` and `.
    """
    if len(texts) > most:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    return last.join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))
