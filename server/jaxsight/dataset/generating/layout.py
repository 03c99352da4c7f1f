"""Lines of generated programs, wrapped as `ruff format` wraps them."""

from __future__ import annotations

import re

from jaxsight.dataset.generating.types import (
    AND,
    ATOM,
    COMPARISON,
    OR,
    PRODUCT,
    SHIFT,
    SUM,
    XOR,
    precedence,
)

WIDTH = 88
_SYMBOLS = {
    COMPARISON: ("<", ">", "<=", ">=", "==", "!="),
    OR: ("|",),
    XOR: ("^",),
    AND: ("&",),
    SHIFT: ("<<", ">>"),
    SUM: ("+", "-"),
    PRODUCT: ("*", "/", "%", "@", "//"),
}

_CLOSING = {"(": ")", "[": "]", "{": "}"}


def wrapped(text: str, indent: int) -> list[str]:
    """Return a statement as lines of at most 88 columns.

    A long one is split at its last bracket, whose items stay on one line where they fit, or
    between its operators.
    """
    margin = " " * indent
    if indent + len(text) <= WIDTH:
        return [margin + text]
    operators = _operators(text, indent)
    if operators is not None:
        return operators
    tail = ":" if text.endswith(":") else "," if text.endswith(",") else ""
    body = text[: len(text) - len(tail)]
    start = _last_bracket(body)
    if start is None:
        return [margin + text]
    inner = body[start + 1 : -1]
    head, foot = margin + body[: start + 1], margin + body[-1] + tail
    if indent + 4 + len(inner) <= WIDTH:
        return [head, f"{margin}    {inner}", foot]
    lines = [head]
    for item in items(inner):
        lines += wrapped(f"{item},", indent + 4)
    return [*lines, foot]


_STATEMENT = re.compile(r"(return|[\w, ()]+ =) (.+)")


def _operators(text: str, indent: int) -> list[str] | None:
    """Return a statement whose expression is no single call, in parentheses."""
    match = _STATEMENT.fullmatch(text)
    if match is None or precedence(match[2]) == ATOM or "lambda" in match[2]:
        return None
    margin, inner = " " * indent, match[2]
    body = [inner]
    if indent + 4 + len(inner) > WIDTH:
        body = _terms(inner)
    lines = [f"{margin}    {line}" for line in body]
    return [f"{margin}{match[1]} (", *lines, f"{margin})"]


def _terms(text: str) -> list[str]:
    """Return the operands of the outermost operators, each after its operator."""
    level = precedence(text)
    parts, depth, start, position = [], 0, 0, 0
    for word in text.split(" "):
        depth += sum(word.count(letter) for letter in "([{") - sum(
            word.count(letter) for letter in ")]}"
        )
        is_operator = not depth and word in _SYMBOLS.get(level, ())
        if is_operator and position:
            parts.append(text[start : position - 1])
            start = position
        position += len(word) + 1
    return [*parts, text[start:]]


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
