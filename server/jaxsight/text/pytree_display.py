"""Fit displays of pytrees: fold them into one short line, or wrap them over several.

The tracer describes a value on one line (`{'w': f32[8,16], 'layers': (Linear(weight=f32[3,4]),)}`);
a hint has room for less, a hover for more lines. Only the text is examined: text that is not a
display of a tree stays as it is, truncated if it is too long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ELLIPSIS = "…"
_INDENT = "    "
_ATOM = re.compile(
    r"""\w+(?:<\w+>)?\[[^\[\]()' ]*\](?:\(numpy\))?   # an array
      | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*"        # a string
      | <[^<>]*>                                      # an opaque object
    """,
    re.VERBOSE,
)
_ARRAY = re.compile(r"\w(?:<\w+>)?\[[^\[\]()' ]*\]")
_CLOSES = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class _Node:
    """`before` + opening bracket + items + `after`, which begins with the closing bracket."""

    before: str
    items: tuple[_Tree, ...]
    after: str

    @property
    def folded(self) -> str:
        return f"{self.before}{ELLIPSIS if self.items else ''}{self.after}"


_Tree = _Node | str


def has_array(text: str) -> bool:
    """Return whether a display contains an array, abstract or not."""
    return _ARRAY.search(text) is not None


def folded(text: str, width: int) -> str:
    """Return the display in at most `width` characters.

    Inner containers become `(…)`, the deepest first; then fields without arrays are dropped, then
    the last items, then characters.
    """
    if len(text) <= width:
        return text
    tree = _read(text)
    for candidate in (tree, _arrays_only(tree)):
        for depth in range(_depth(candidate) - 1, 0, -1):
            line = _line(candidate, depth)
            if len(line) <= width:
                return line
    line = _shortened(_arrays_only(tree), width)
    return line if len(line) <= width else line[: width - 1] + ELLIPSIS


def wrapped(text: str, width: int, lines: int) -> str:
    """Return the display in at most about `lines` lines, each within `width` if its items allow it.

    If that is not enough, fields without arrays are dropped first, then inner containers become
    `(…)`.
    """
    tree = _read(text)
    if len(text) <= width or isinstance(tree, str):
        return text
    block = _block(tree, _depth(tree), width)
    if len(block) > lines:
        tree = _arrays_only(tree, dropped=(ELLIPSIS,))
        for depth in range(_depth(tree), 0, -1):
            block = _block(tree, depth, width)
            if len(block) <= lines:
                break
    return "\n".join(block)


def _line(tree: _Tree, depth: int) -> str:
    """Return the tree on one line, with containers below `depth` folded."""
    if isinstance(tree, str):
        return tree
    if depth == 0:
        return tree.folded
    return f"{tree.before}{', '.join(_line(item, depth - 1) for item in tree.items)}{tree.after}"


def _block(tree: _Tree, depth: int, width: int) -> list[str]:
    """Return the tree on several lines if one is too long, with containers below `depth` folded."""
    line = _line(tree, depth)
    if isinstance(tree, str) or depth == 0 or len(line) <= width:
        return [line]
    lines = [tree.before]
    for item in tree.items:
        block = _block(item, depth - 1, width - len(_INDENT))
        lines += [f"{_INDENT}{each}" for each in block]
        lines[-1] += "" if block[-1] == ELLIPSIS else ","
    return [*lines, tree.after]


def _shortened(tree: _Tree, width: int) -> str:
    """Return as many of the outermost items as fit, folded."""
    if isinstance(tree, str):
        return tree
    items = [_line(item, 0) for item in tree.items]
    while items:
        line = f"{tree.before}{', '.join([*items, ELLIPSIS])}{tree.after}"
        if len(line) <= width:
            return line
        items.pop()
    return tree.folded


def _arrays_only(tree: _Tree, dropped: tuple[_Tree, ...] = ()) -> _Tree:
    """Return the tree without fields (`name=…`) that contain no array, if others do.

    `dropped` takes their place.
    """
    if isinstance(tree, str):
        return tree
    items = tuple(item for item in tree.items if _holds_array(item) or not _is_field(item))
    if not any(_holds_array(item) for item in items):
        return tree
    parts = tuple(_arrays_only(item, dropped) for item in items)
    return _Node(tree.before, parts + (dropped if len(items) < len(tree.items) else ()), tree.after)


def _holds_array(tree: _Tree) -> bool:
    return has_array(_line(tree, -1))


def _is_field(tree: _Tree) -> bool:
    text = tree if isinstance(tree, str) else tree.before
    return re.match(r"\w+=", text) is not None or text == ELLIPSIS


def _depth(tree: _Tree) -> int:
    """Return the nesting depth of containers."""
    if isinstance(tree, str):
        return 0
    return 1 + max((_depth(item) for item in tree.items), default=0)


def _read(text: str) -> _Tree:
    """Return the tree of a display; the text itself if its brackets do not match."""
    items, end = _items(text, 0, "")
    return items[0] if end == len(text) and len(items) == 1 else text


def _items(text: str, at: int, closing: str) -> tuple[tuple[_Tree, ...], int]:
    """Return the items from `at` up to the closing bracket, and its offset (-1 if missing)."""
    items: list[_Tree] = []
    begin = at
    inner: _Node | None = None

    def ended(end: int) -> None:
        if inner is not None:
            items.append(_Node(inner.before, inner.items, inner.after + text[after:end]))
        elif text[begin:end].strip():
            items.append(text[begin:end])

    after = at
    while at < len(text):
        if (atom := _ATOM.match(text, at)) is not None:
            at = atom.end()
        elif text[at] in _CLOSES and inner is None:
            parts, end = _items(text, at + 1, _CLOSES[text[at]])
            if end < 0:
                return (), -1
            inner = _Node(text[begin : at + 1], parts, text[end])
            at = after = end + 1
        elif text[at] in _CLOSES.values():
            if text[at] != closing:
                return (), -1
            ended(at)
            return tuple(items), at
        elif text.startswith(", ", at) and closing:
            ended(at)
            inner, at = None, at + 2
            begin = after = at
        elif text[at] == "," and closing and text[at + 1 : at + 2] == closing:
            at += 1  # the comma of a tuple of one
        else:
            at += 1
    ended(at)
    return (tuple(items), at) if not closing else ((), -1)
