"""Quote expressions and shorten texts so that messages stay short."""

from __future__ import annotations

MOST = 100
"""Characters of a message (CONTRIBUTING.md, "Write text for users")."""
MOST_QUOTED = 40
"""Characters of an expression that a message quotes, which leaves 60 for what is wrong with it;
less where it quotes several, more in a `help`."""


def quoted(expression: str, fallback: str = "this value", most: int = MOST_QUOTED) -> str:
    """Return an expression in backticks, on one line and cut at `most`; else `fallback`."""
    text = " ".join(expression.split())
    return f"`{cut(text, most)}`" if text else fallback


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, which ends with `…` where it is longer."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def short(text: str) -> str:
    """Return code of at most 60 characters, for a help."""
    return text if len(text) <= 60 else text[:57] + "…"


def fitting(message: str, shorter: str) -> str:
    """Return a message, or a shorter one where it is too long."""
    return message if len(message) <= MOST else shorter
