"""Fit labels into the width of the setting `inlayHints.width`.

Code stands beside hints, so a label has few characters; the tooltip has all of it. A part is shown
whole or not at all, because half a figure is a wrong one, and a label without a part ends in `…`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jaxsight.text.pytree_display import ELLIPSIS


@dataclass(frozen=True, slots=True)
class LabelPart:
    """A part of a label.

    Parts with a smaller rank are kept first; a label has those of rank 0 in any width.
    """

    text: str
    rank: int = 1
    shorter: tuple[str, ...] = ()
    """Forms with less, the longest first."""


def fitted(parts: Sequence[LabelPart], width: int, separator: str = " · ") -> str:
    """Return the parts in one line of at most `width` characters, in their order."""
    whole = separator.join(part.text for part in parts)
    if len(whole) <= width:
        return whole
    kept: dict[int, str] = {}
    for index in sorted(range(len(parts)), key=lambda index: parts[index].rank):
        part = parts[index]
        forms = (part.text, *part.shorter)
        fits = (t for t in forms if len(_joined({**kept, index: t}, separator)) <= width)
        text = next(fits, forms[-1] if part.rank == 0 else None)
        if text is not None:
            kept[index] = text
    return _joined(kept, separator)


def listed(mark: str, texts: Sequence[str], of: Sequence[str], width: int) -> str:
    """Return a label with the first texts: `⊣ fft, scan … · step`.

    Args:
        mark: what the label begins with.
        texts: the first of them is always shown.
        of: the name of the function that they are about, if it must be said.
        width: the characters of the label.
    """
    parts = [LabelPart(f"{mark}{texts[0]}", 0), *(LabelPart(text) for text in texts[1:])]
    name = "".join(f" · {name}" for name in of)
    line = fitted(parts, width - len(name), ", ")
    if len(line) + len(name) <= width:
        return f"{line}{name}"
    return _joined({0: fitted(parts, width, ", ")}, "")


def _joined(kept: Mapping[int, str], separator: str) -> str:
    """Return the kept parts, which are not all of them."""
    line = separator.join(kept[index] for index in sorted(kept))
    return f"{line.removesuffix(ELLIPSIS).rstrip()} {ELLIPSIS}"
