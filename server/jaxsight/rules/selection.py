"""Which rules are reported: codes, prefixes of codes, names, and `ALL`."""

from __future__ import annotations

from jaxsight.rules import NAMES, RULES

ALL = "ALL"


def is_selector(text: str) -> bool:
    """Whether a text is a code, a prefix of one, a rule's name or `ALL`."""
    return text == ALL or text in NAMES or any(code.startswith(text) for code in RULES)


def ignored(code: str, selectors: tuple[str, ...]) -> bool:
    """Whether one of the selectors is of the code."""
    return _longest(code, selectors) >= 0


def selected(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    """Whether `code` is reported.

    The longest matching prefix of either list decides, as in ruff; a name is as good as the whole
    code. Without `select` those rules are reported that are on by default.
    """
    chosen = _longest(code, select) if select else (0 if RULES[code].on else -1)
    return chosen >= 0 and chosen > _longest(code, ignore)


def _longest(code: str, selectors: tuple[str, ...]) -> int:
    """Return the length of the longest selector that is of the code; 0 for `ALL`, -1 for none."""
    lengths = [
        0 if selector == ALL else len(code) if selector in NAMES else len(selector)
        for selector in selectors
        if selector == ALL
        or (NAMES[selector].code == code if selector in NAMES else code.startswith(selector))
    ]
    return max(lengths, default=-1)
