"""Lines of generated programs, wrapped as `ruff format` wraps them."""

from __future__ import annotations

WIDTH = 88

_CLOSING = {"(": ")", "[": "]", "{": "}"}


def wrapped(text: str, indent: int) -> list[str]:
    """Return a statement as lines of at most 88 columns.

    A long one is split at its last bracket, whose items stay on one line where they fit.
    """
    margin = " " * indent
    if indent + len(text) <= WIDTH:
        return [margin + text]
    tail = ":" if text.endswith(":") else "," if text.endswith(",") else ""
    body = text[: len(text) - len(tail)]
    start = _last_bracket(body)
    if start is None:
        return [margin + text]
    inner = body[start + 1 : -1]
    head, foot = margin + body[: start + 1], margin + body[-1] + tail
    if indent + 4 + len(inner) <= WIDTH and not _is_comprehended(inner):
        return [head, f"{margin}    {inner}", foot]
    lines = [head]
    for item in items(inner):
        lines += wrapped(f"{item},", indent + 4)
    return [*lines, foot]


def _is_comprehended(inner: str) -> bool:
    return inner.endswith(",")


def _last_bracket(text: str) -> int | None:
    """Return where the bracket opens that the last letter closes."""
    depth = 0
    for position in range(len(text) - 1, -1, -1):
        letter = text[position]
        if letter in ")]}":
            depth += 1
        elif letter in "([{":
            depth -= 1
            if not depth:
                return position
        if not depth:
            return None
    return None


def items(text: str) -> list[str]:
    """Return the parts of a text between the commas outside of brackets and strings."""
    parts, depth, start, quoted = [], 0, 0, False
    for position, letter in enumerate(text):
        quoted ^= letter == '"'
        if quoted:
            continue
        depth += (letter in _CLOSING) - (letter in ")]}")
        if letter == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()] if text[start:].strip() else parts
