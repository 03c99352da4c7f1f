"""Pytrees as expressions, with stand-ins for the user's classes."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.repro.capture.call_tree.records import Node
from jaxsight.sourcerizer.text.exprs import (
    NONE,
    Atom,
    Attribute,
    Expr,
    Index,
    call,
    dict_,
    list_,
    tuple_,
)
from jaxsight.sourcerizer.text.names import ModuleNames, identifier
from jaxsight.sourcerizer.text.statements import Raw
from jaxsight.sourcerizer.values.spelling import value


class StandIns:
    """The classes that a module defines in place of the user's."""

    def __init__(self, names: ModuleNames) -> None:
        self._names = names
        self._classes: dict[tuple[str, str, tuple[object, ...]], str] = {}
        self._static: set[str] = set()

    def name_of(self, node: Node) -> str:
        """Return the name of the class for a node."""
        key = (node.kind, node.name, node.keys)
        if key not in self._classes:
            self._classes[key] = self._names.fresh(identifier(node.name, "Node"))
        name = self._classes[key]
        if node.meta:
            self._static.add(name)
        return name

    def statements(self) -> list[Raw]:
        """Return the definitions of the classes."""
        return [
            Raw(self._definition(kind, name, [str(key) for key in keys]))
            for (kind, _, keys), name in self._classes.items()
        ]

    def _definition(self, kind: str, name: str, fields: list[str]) -> list[str]:
        if kind == "named":
            listed = ", ".join(f'"{field}"' for field in fields)
            return ["", "", f'{name} = collections.namedtuple("{name}", [{listed}])']
        lines = [
            "",
            "",
            "@jax.tree_util.register_dataclass",
            "@dataclasses.dataclass",
            f"class {name}:",
            *(f"    {field}: object" for field in fields),
        ]
        if name in self._static:
            static = 'dataclasses.field(default=0, metadata={"static": True})'
            lines.append(f"    static_parts: int = {static}")
        return lines if fields or name in self._static else [*lines, "    pass"]

    @property
    def modules(self) -> list[str]:
        """The modules that the definitions need."""
        kinds = {kind for kind, _, _ in self._classes}
        needed = {"named": "collections", "class": "dataclasses"}
        return sorted(module for kind, module in needed.items() if kind in kinds)

    def expr(self, node: Node, leaves: Sequence[Expr]) -> Expr:
        """Return the expression of a pytree."""
        if node.kind == "leaf":
            return leaves[0]
        if node.kind == "none":
            return NONE
        parts = []
        start = 0
        for child in node.children:
            parts.append(self.expr(child, leaves[start : start + child.leaves]))
            start += child.leaves
        match node.kind:
            case "tuple":
                return tuple_(parts)
            case "list":
                return list_(parts)
            case "dict":
                return dict_(zip(map(value, node.keys), parts, strict=True))
            case _:
                static = {"static_parts": Atom(str(node.meta))} if node.meta else {}
                return call(self.name_of(node), *parts, **static)


def is_plain(node: Node) -> bool:
    """Return whether a pytree has standard containers only."""
    return node.kind not in ("class", "named") and all(map(is_plain, node.children))


def part(expr: Expr, node: Node, index: int) -> Expr:
    """Return the expression of a child of a pytree."""
    match node.kind:
        case "dict":
            return Index(expr, (value(node.keys[index]),))
        case "class" | "named":
            name = str(node.keys[index])
            return expr.dot(name) if isinstance(expr, Atom) else Attribute(expr, name)
        case _:
            return Index(expr, (Atom(str(index)),))


def base_of(node: Node, index: int, around: str) -> str:
    """Return a base name for a child of a pytree."""
    key = node.keys[index] if index < len(node.keys) else None
    if isinstance(key, str):
        return identifier(key, around)
    return f"{around}_{index}"
