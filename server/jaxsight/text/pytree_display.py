"""Fit displays of pytrees: fold them into one short line, or wrap them over several.

The tracer describes a value on one line (`{'w': f32[8,16], 'layers': (Linear(weight=f32[3,4]),)}`);
a hint has room for less, a hover for more lines. Only the text is examined: text that is not a
display of a tree stays as it is, truncated if it is too long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

ELLIPSIS = "…"
_INDENT = "    "
_ATOM = re.compile(
    r"""\w+(?:<\w+>)?\[(?:[^\[\]()' ]|\([^\[\]()' ]*\))*\]  # f32[8@data,16@(a,b)], f32[(L+1)//2]
        (?:\{[^{}\[\]']*\})?(?:\(numpy\))?                  # {V:x, U:y}
      | '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*"        # a string
      | <[^<>]*>                                      # an opaque object
    """,
    re.VERBOSE,
)
_ARRAY = re.compile(r"\w(?:<\w+>)?\[(?:[^\[\]()' ]|\([^\[\]()' ]*\))*\]")
_WRAPS = re.compile(r"\w+\($")
"""The name of a class and its bracket, at the end of what is before its fields."""
_NUMBER_AT_END = re.compile(r"\w*\d[\w.]*$")
_CLOSES = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class _Node:
    """`before` + opening bracket + children + `after`, which begins with the closing bracket.

    What is no container is all in `before`.
    """

    before: str
    children: tuple[_Node, ...] = ()
    after: str = ""

    @property
    def folded(self) -> str:
        return f"{self.before}{ELLIPSIS if self.children else ''}{self.after}"


def has_array(text: str) -> bool:
    """Return whether a display contains an array, abstract or not."""
    return _ARRAY.search(text) is not None


def folded(text: str, width: int) -> str:
    """Return the display in at most `width` characters.

    Classes around single arrays are dropped; then inner containers become `(…)`, the deepest first;
    then fields without arrays are dropped, then the last items, then characters.
    """
    if len(text) <= width:
        return text
    tree = _unwrapped(_read(text))
    for candidate in (tree, _arrays_only(tree)):
        for depth in range(_depth(candidate), 0, -1):
            line = _line(candidate, depth)
            if len(line) <= width:
                return line
    line = _shortened(_arrays_only(tree), width)
    if len(line) <= width:
        return line
    # Without parts of numbers: `f32[16,…`, not `f32[16,10…`.
    kept = line[: max(width - 1, 0)]
    whole = _NUMBER_AT_END.sub("", kept) if re.match(r"[\w.]", line[len(kept) :]) else kept
    return (whole or kept) + ELLIPSIS


def _unwrapped(tree: _Node) -> _Node:
    """Return the tree without classes around single arrays: `w=f32[3]` for `w=Param(f32[3])`."""
    match tree.children:
        case (_Node(array, after=""),) if _WRAPS.search(tree.before) and _ATOM.fullmatch(array):
            return _Node(f"{_WRAPS.sub('', tree.before)}{array}")
        case children:
            return replace(tree, children=tuple(map(_unwrapped, children)))


def wrapped(text: str, width: int, lines: int) -> str:
    """Return the display in at most about `lines` lines, each within `width` if its items allow it.

    If that is not enough, fields without arrays are dropped first, then inner containers become
    `(…)`.
    """
    tree = _read(text)
    if len(text) <= width or not tree.after:
        return text
    block = _block(tree, _depth(tree), width)
    if len(block) > lines:
        tree = _arrays_only(tree, dropped=(_Node(ELLIPSIS),))
        for depth in range(_depth(tree), 0, -1):
            block = _block(tree, depth, width)
            if len(block) <= lines:
                break
    return "\n".join(block)


def _line(tree: _Node, depth: int) -> str:
    """Return the tree on one line, with containers below `depth` folded."""
    if depth == 0:
        return tree.folded
    inside = ", ".join(_line(child, depth - 1) for child in tree.children)
    return f"{tree.before}{inside}{tree.after}"


def _block(tree: _Node, depth: int, width: int) -> list[str]:
    """Return the tree on several lines if one is too long, with containers below `depth` folded."""
    line = _line(tree, depth)
    if not tree.after or depth == 0 or len(line) <= width:
        return [line]
    lines = [tree.before]
    for child in tree.children:
        block = _block(child, depth - 1, width - len(_INDENT))
        lines += [f"{_INDENT}{line}" for line in block]
        lines[-1] += "" if block[-1] == ELLIPSIS else ","
    return [*lines, tree.after]


def _shortened(tree: _Node, width: int) -> str:
    """Return as many of the outermost children as fit, folded."""
    children = [_line(child, 0) for child in tree.children]
    while children:
        line = f"{tree.before}{', '.join([*children, ELLIPSIS])}{tree.after}"
        if len(line) <= width:
            return line
        children.pop()
    return tree.folded


def _arrays_only(tree: _Node, dropped: tuple[_Node, ...] = ()) -> _Node:
    """Return the tree without fields (`name=…`) that contain no array, if others do.

    `dropped` takes their place.
    """
    children = tuple(
        child for child in tree.children if _holds_array(child) or not _is_field(child)
    )
    if not any(_holds_array(child) for child in children):
        return tree
    parts = tuple(_arrays_only(child, dropped) for child in children)
    return _Node(
        tree.before, parts + (dropped if len(children) < len(tree.children) else ()), tree.after
    )


def _holds_array(tree: _Node) -> bool:
    return has_array(_line(tree, -1))


def _is_field(tree: _Node) -> bool:
    return re.match(r"\w+=", tree.before) is not None or tree.before == ELLIPSIS


def _depth(tree: _Node) -> int:
    """Return the nesting depth of containers."""
    return bool(tree.after) + max((_depth(child) for child in tree.children), default=0)


def _read(text: str) -> _Node:
    """Return the tree of a display; no container if its brackets do not match."""
    children, end = _children(text, 0, "")
    return children[0] if end == len(text) and len(children) == 1 else _Node(text)


def _children(text: str, at: int, closing: str) -> tuple[tuple[_Node, ...], int]:
    """Return the children from `at` up to the closing bracket, and its offset (-1 if missing)."""
    children: list[_Node] = []
    begin = at
    inner: _Node | None = None

    def ended(end: int) -> None:
        if inner is not None:
            children.append(_Node(inner.before, inner.children, inner.after + text[after:end]))
        elif text[begin:end].strip():
            children.append(_Node(text[begin:end]))

    after = at
    while at < len(text):
        if (atom := _ATOM.match(text, at)) is not None:
            at = atom.end()
        elif text[at] in _CLOSES and inner is None:
            parts, end = _children(text, at + 1, _CLOSES[text[at]])
            if end < 0:
                return (), -1
            inner = _Node(text[begin : at + 1], parts, text[end])
            at = after = end + 1
        elif text[at] in _CLOSES.values():
            if text[at] != closing:
                return (), -1
            ended(at)
            return tuple(children), at
        elif text.startswith(", ", at) and closing:
            ended(at)
            inner, at = None, at + 2
            begin = after = at
        elif text[at] == "," and closing and text[at + 1 : at + 2] == closing:
            at += 1  # the comma of a tuple of one
        else:
            at += 1
    ended(at)
    return (tuple(children), at) if not closing else ((), -1)
