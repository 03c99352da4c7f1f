"""Modules and large trees of arrays in words: one short form, and a table of their parts."""

from __future__ import annotations

import re

from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.text.layout import aligned, cut
from jaxsight.text.markdown import fenced
from jaxsight.wire.observations import Row, Tree

MOST_LINES = 16
"""Lines of a table in a hover, a choice: what follows has to be seen without scrolling."""
_LONGEST_NAME = 32
_LONGEST_TYPE = 64
"""Characters of a name and of a type, a choice: a row of four columns must not wrap."""
_PARAMETERS = re.compile(r"param|weight", re.IGNORECASE)
_CONTAINERS = {"dict": "{}", "list": "[]", "tuple": "()"}


def brief(tree: Tree | None, text: str, width: int) -> str:
    """Return a value's text if it fits or has no tree, else its short form."""
    return text if tree is None or len(text) <= width else short(tree, width)


def short(tree: Tree, width: int) -> str:
    """Return `Transformer(51 arrays, 910 KiB)`, `{12 arrays, 475 MiB}` or `[4 × Block(…)]`.

    A few arrays are named if they fit: `Linear(bias=f32[3], kernel=f32[2,3])`.
    """
    root = tree.rows[0]
    if len(tree.rows) == 1 and len(root.text) <= width:
        return one_line(root.text)
    inside = f"{_least(tree)}{units.count(root.arrays, 'array')}, {units.size(root.bytes)}"
    parts = [row for row in tree.rows if row.depth == 1]
    if root.text in ("list", "tuple") and len(parts) == 1:
        (only,) = parts
        times = f"{only.times} × " if only.times > 1 else ""
        one = f"{units.count(only.arrays, 'array')}, {units.size(only.bytes)}"
        inside = f"{times}{_around(only.text, one)}"
    return one_line(_around(root.text, inside))


def block(tree: Tree, name: str = "", most: int = MOST_LINES) -> str:
    """Return the title and the table as a code block in Markdown."""
    return fenced("\n".join(lines(tree, name, most)), "text")


def lines(tree: Tree, name: str = "", most: int = MOST_LINES) -> list[str]:
    """Return the title and the table, with at most `most` lines besides the title."""
    rows = table(tree, most)
    return [title(tree, name), *(["", *rows] if rows else [])]


def title(tree: Tree, name: str = "") -> str:
    """Return `model: Transformer · 232,832 parameters · 910 KiB`.

    The elements of other values than modules are called parameters if their name says so.
    """
    root, least = tree.rows[0], _least(tree)
    is_whole = len(tree.rows) == 1 and len(root.text) <= _LONGEST_TYPE
    text = root.text if is_whole else _class(root.text)
    words = [f"{name}: {text}" if name else text]
    if root.elements and (tree.is_module or _PARAMETERS.search(name.rpartition(".")[2])):
        words.append(f"{least}{root.elements:,} parameters")
    else:
        words.append(f"{least}{units.count(root.arrays, 'array')}")
    return one_line(" · ".join([*words, f"{least}{units.size(root.bytes)}"]))


def table(tree: Tree, most: int = MOST_LINES) -> list[str]:
    """Return at most `most` lines with the parts of a tree: names, types, elements, bytes."""
    # As deep as the table fits, at least one level.
    deepest = max(row.depth for row in tree.rows)
    fits = (
        depth
        for depth in range(deepest, 1, -1)
        if sum(0 < row.depth <= depth for row in tree.rows) <= most
    )
    depth = next(fits, 1)
    rows = [row for row in tree.rows[1:] if row.depth <= depth]
    shown = rows if len(rows) <= most else rows[: most - 1]
    more = [f"… {len(rows) - len(shown)} more"] if len(shown) < len(rows) else []
    return [*aligned([*map(_cells, shown)], "llrr"), *more]


def _cells(row: Row) -> tuple[str, str, str, str]:
    times = f"{row.times} × " if row.times > 1 else ""
    name = f"{'  ' * (row.depth - 1)}{one_line(row.name)}"
    return (
        cut(name, _LONGEST_NAME),
        cut(f"{times}{one_line(row.text)}", _LONGEST_TYPE),
        f"{times}{row.elements:,}" if row.elements else "",
        f"{times}{units.size(row.bytes)}" if row.bytes else "",
    )


def _class(text: str) -> str:
    """Return the class in the text of a row, without settings and arrays."""
    return {"{": "dict", "[": "list", "(": "tuple"}.get(text[:1]) or text.partition("(")[0]


def _around(text: str, inside: str) -> str:
    """Return `Block(inside)`, or `{inside}` for a dictionary."""
    brackets = _CONTAINERS.get(_class(text))
    return f"{brackets[0]}{inside}{brackets[1]}" if brackets else f"{_class(text)}({inside})"


def _least(tree: Tree) -> str:
    return "" if tree.is_complete else "≥ "
