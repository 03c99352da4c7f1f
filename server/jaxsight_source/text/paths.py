"""Paths by which parts of arguments are read, such as `params["h"][0]["w"]`.

A path is a root and steps, so that the common part of several paths can be passed as a whole.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight_source.text.exprs import call, is_atom, parsed, span, subscript
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import identifier, of_path

Step = tuple[str, str]
"""An index (`[`) with its text, or an attribute (`.`) with its name."""

_FORMATTED = re.compile(r'^f".*\}"$')
"""A key that contains a loop counter."""


@dataclass(frozen=True, slots=True)
class Path:
    """A root name and the steps from it to a part."""

    root: str
    steps: tuple[Step, ...]

    @property
    def name(self) -> str:
        """A name for the part, from its last words, which are the most specific."""
        words = (_FORMATTED.sub("", text).strip("\"'") for _, text in self.steps)
        return of_path("_".join((self.root, *filter(None, words))), self.root)

    @property
    def expr(self) -> ast.expr:
        expr: ast.expr = ast.Name(self.root)
        for kind, text in self.steps:
            expr = subscript(expr, parsed(text)) if kind == "[" else ast.Attribute(expr, text)
        return expr


def path_of(expr: object) -> Path | None:
    """Return the path that an expression reads, or None for other expressions."""
    steps: list[Step] = []
    while True:
        match expr:
            case ast.Subscript(inside, at) if is_atom(at):
                steps.append(("[", flat(at)))
                expr = inside
            case ast.Attribute(inside, name):
                steps.append((".", name))
                expr = inside
            case ast.Name(root):
                return Path(root, tuple(reversed(steps)))
            case _:
                return None


def shared_end(paths: Sequence[Path | None]) -> tuple[Step, ...]:
    """Return the last steps that all paths have in common; empty if one of them is not a path."""
    first, *further = paths
    if first is None:
        return ()
    end = first.steps
    for path in further:
        if path is None:
            return ()
        count = 0
        while count < min(len(end), len(path.steps)) and end[-1 - count] == path.steps[-1 - count]:
            count += 1
        end = end[len(end) - count :]
    return end


@dataclass(frozen=True, slots=True)
class Walk:
    """Paths that differ in one step: the collection, its indices, and the steps from an element."""

    base: Path
    keys: tuple[str, ...]
    after: tuple[Step, ...]


def walk(paths: Sequence[Path | None]) -> Walk | None:
    """Return paths as a walk over one collection, or None if they differ in more than one index."""
    first = paths[0]
    if first is None or not all(
        path is not None and path.root == first.root and len(path.steps) == len(first.steps)
        for path in paths
    ):
        return None
    rows: list[tuple[Step, ...]] = [path.steps for path in paths if path is not None]
    differing = [
        position for position, column in enumerate(zip(*rows, strict=True)) if len(set(column)) > 1
    ]
    if len(differing) != 1 or any(row[differing[0]][0] != "[" for row in rows):
        return None
    (position,) = differing
    keys = tuple(row[position][1] for row in rows)
    return Walk(Path(first.root, first.steps[:position]), keys, first.steps[position + 1 :])


def iterated(base: ast.expr, keys: Sequence[str], size: int | None) -> ast.expr | None:
    """Return an expression for the elements at these indices, such as `reversed(params["h"])`.

    Return None if no slice selects them.

    Args:
        size: the length of the collection, if known.
    """
    if not all(key.isdecimal() for key in keys):
        return None
    numbers = list(map(int, keys))
    steps = {after - before for before, after in itertools.pairwise(numbers)}
    if len(steps) != 1:
        return None
    (step,) = steps
    first, last = numbers[0], numbers[-1]
    if step == 1:
        stop = None if last + 1 == size else last + 1
        return subscript(base, span(first, stop)) if first or stop else base
    if step == -1:
        if first + 1 == size and last == 0:
            return call("reversed", base)
        start = None if first + 1 == size else first
        return subscript(base, span(start, last - 1 if last else None, -1))
    return subscript(base, span(first, last + 1, step)) if step > 1 else None


_QUOTED = re.compile(r"""(["'])(\w*?)(\d+)\1$""")


def numbered(keys: Sequence[str]) -> tuple[str, range] | None:
    """Return the common prefix and the numbers of keys such as `"Block_0"`, `"Block_1"`.

    Return None for other keys, and unless the numbers are evenly spaced.
    """
    matches = [_QUOTED.match(key) for key in keys]
    if not all(matches):
        return None
    before = {match[2] for match in matches if match}
    numbers = [match[3] for match in matches if match]
    if len(before) != 1 or any(str(int(number)) != number for number in numbers):
        return None
    values = list(map(int, numbers))
    step = values[1] - values[0]
    if not step or any(b - a != step for a, b in itertools.pairwise(values)):
        return None
    return before.pop(), range(values[0], values[-1] + (1 if step > 0 else -1), step)


def element_name(base: Path) -> str:
    """Return a name for an element of a collection: `layer` for `params["layers"]`."""
    last = re.sub(r"\W", "", base.steps[-1][1]) if base.steps else base.root
    name = identifier(last, "part")
    if len(name) > 3 and name.endswith("s") and not name.endswith("ss"):
        return name[:-1]
    return "p" if len(name) < 3 else f"{name}_part"
