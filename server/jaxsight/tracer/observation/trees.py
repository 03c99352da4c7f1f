"""Describe modules, optimizer states and other large trees of arrays, with their figures.

Work and result are bounded; like a display, this runs no operation and keeps no value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np

from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.observation import display
from jaxsight.tracer.states import modules
from jaxsight.wire.observations import Row, Tree
from jaxsight_source.compat import avals

_FEW = 4
"""A container with at most this many arrays has no tree: its text shows them."""
_MOST_VISITED, _MOST_ROWS, _DEEPEST = 20_000, 60, 16
"""Parts that are looked at, rows that are shown (a screen or two), and levels (cycles end)."""
_SHOWN_SETTINGS = 3
"""Maximum number of settings of a user's module that are shown, such as `heads=4`."""
_LONGEST_SETTING = 20  # characters


@dataclass(frozen=True, slots=True)
class _Node:
    """A part without its name, so that equal parts are equal; figures are those of one."""

    text: str
    arrays: int = 0
    elements: int = 0
    bytes: int = 0
    children: tuple[_Group, ...] = ()


@dataclass(frozen=True, slots=True)
class _Group:
    """Equal parts of one container."""

    name: str
    times: int
    node: _Node


def tree(value: object) -> Tree | None:
    """Return the tree of a module, or of a value with many arrays; else `None`."""
    is_module = bool(modules.kind(type(value)))
    builder = _Builder()
    root = builder.node(value)
    is_shown = is_module or modules.is_of(type(value), "flax.nnx")
    if root is None or not root.children or root.arrays < (1 if is_shown else _FEW + 1):
        return None
    # As deep as there is room for.
    rows: list[Row] = []
    for depth in range(1, _DEEPEST):
        deeper = list(_down_to(root, "", 1, 0, depth))
        if rows and (len(deeper) > _MOST_ROWS or len(deeper) == len(rows)):
            break
        rows = deeper[:_MOST_ROWS]
    return Tree(tuple(rows), is_module, builder.visited < _MOST_VISITED)


class _Builder:
    def __init__(self) -> None:
        self.visited = 0
        self._around: set[int] = set()
        self._variables: set[int] = set()

    def node(self, value: object, depth: int = 0) -> _Node | None:
        """Return a part with arrays; `None` for one without."""
        self.visited += 1
        if self.visited >= _MOST_VISITED or depth > _DEEPEST:
            return None
        if (text := display.array(value)) is not None:
            aval = value if avals.is_aval(value) else avals.of(value)
            shape, dtype = getattr(aval, "shape", ()), getattr(aval, "dtype", None)
            is_parameter = dtype is not None and jnp.issubdtype(dtype, np.inexact)
            try:
                elements = int(math.prod(shape))
            except (TypeError, ValueError):  # a symbolic dimension
                return _Node(text, 1)
            return _Node(text, 1, elements if is_parameter else 0, avals.size(aval))
        if modules.is_variable(value):
            return self._variable(value, depth)
        is_plain = isinstance(value, str | bytes | int | float | complex | None)
        # A cycle if the value is around: it contains itself.
        is_leaf = is_plain or id(value) in self._around
        contents = None if is_leaf else display.parts_of(value)
        if contents is None:
            return None
        self._around.add(id(value))
        pairs = [(key, self.node(part, depth + 1)) for key, part in contents.parts]
        self._around.discard(id(value))
        present = [(key, node) for key, node in pairs if node is not None]
        if not present:
            return None
        nodes = [node for _, node in present]
        return _Node(
            _class_text(value, contents),
            sum(node.arrays for node in nodes),
            sum(node.elements for node in nodes),
            sum(node.bytes for node in nodes),
            tuple(_grouped(present)),
        )

    def _variable(self, value: object, depth: int) -> _Node | None:
        """Return a variable of NNX as the array in it; one that is shared counts once."""
        inside, _ = display.flattened(value)
        node = self.node(inside[0], depth + 1) if len(inside) == 1 else None
        if node is None:
            return None
        if id(value) in self._variables:
            return _Node(f"{node.text} (shared)")
        self._variables.add(id(value))
        if modules.is_parameter(value):
            return node
        kind = type(value).__name__
        # All variables of an optimizer are copies of others: their class says nothing.
        text = node.text if kind.startswith("Opt") else f"{node.text} {kind}"
        return replace(node, text=text, elements=0)


def _class_text(value: object, found: display.Parts) -> str:
    """Return the class of a container, for users' modules with a few settings."""
    cls = type(value)
    if not found.name:
        return cls.__name__
    if not modules.kind(cls) or code_origins.of_module(str(cls.__module__)) != code_origins.USER:
        return found.name
    own = [(n, v) for n, v in modules.attributes(value).items() if not n.startswith("_")]
    settings = [f"{n}={v!r}" for n, v in own if type(v) in (bool, int, float, str)]
    short = [text for text in settings if len(text) <= _LONGEST_SETTING][:_SHOWN_SETTINGS]
    return f"{found.name}({', '.join(short)})" if short else found.name


_NUMBERED = re.compile(r"(?P<before>.*?)(?P<number>0|[1-9]\d*)(?P<after>\D*)")


def _grouped(pairs: Sequence[tuple[object, _Node]]) -> Iterator[_Group]:
    """Yield parts under their names, equal ones with consecutive numbers together."""
    runs: dict[tuple[str, str, _Node], list[int]] = {}
    for index, (key, node) in enumerate(pairs):
        before, number, after = _numbered(index if key is None else key)
        runs.setdefault((before, after, node), []).append(number)
    for (before, after, node), numbers in runs.items():
        ordered = sorted(numbers)
        while ordered:
            count = 1
            while count < len(ordered) and ordered[count] == ordered[0] + count >= 0:
                count += 1
            which = "" if ordered[0] < 0 else str(ordered[0])
            which += f"..{ordered[count - 1]}" if count > 1 else ""
            yield _Group(f"{before}{which}{after}", count, node)
            ordered = ordered[count:]


def _numbered(key: object) -> tuple[str, int, str]:
    """Return the text of a key before and after its number; the number is -1 without one."""
    if isinstance(key, int) and key >= 0:
        return "[", key, "]"
    name = key if isinstance(key, str) else f"[{display.text(key)}]"
    match = _NUMBERED.fullmatch(name)
    return (match["before"], int(match["number"]), match["after"]) if match else (name, -1, "")


def _down_to(node: _Node, name: str, times: int, depth: int, deepest: int) -> Iterator[Row]:
    """Yield the rows of a part; a list whose items are all equal is one row with them."""
    if depth and len(node.children) == 1 and node.children[0].name.startswith("["):
        (group,) = node.children
        if times == 1:
            yield from _down_to(group.node, f"{name}{group.name}", group.times, depth, deepest)
            return
    few = _few_arrays(node)
    yield Row(depth, name, few or node.text, times, node.arrays, node.elements, node.bytes)
    if depth < deepest and not few:
        for group in node.children:
            yield from _down_to(group.node, group.name, group.times, depth + 1, deepest)


def _few_arrays(node: _Node) -> str:
    """Return the text of a part with nothing but a few arrays, which needs no rows of its own.

    Returns an empty string for others.
    """
    groups = node.children
    if not 0 < len(groups) <= _FEW or any(each.node.children or each.times > 1 for each in groups):
        return ""
    match node.text:
        case "dict":
            inside = ", ".join(f"{each.name}: {each.node.text}" for each in groups)
            return f"{{{inside}}}"
        case "list" | "tuple":
            inside = ", ".join(each.node.text for each in groups)
            return f"[{inside}]" if node.text == "list" else f"({inside})"
        case text:
            name, _, settings = text.partition("(")
            named = [f"{each.name}={each.node.text}" for each in groups]
            return f"{name}({', '.join([*filter(None, [settings.removesuffix(')')]), *named])})"
