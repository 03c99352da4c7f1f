"""Pytrees as expressions, with stand-ins for the user's classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.repro.capturing.call_tree.records import Node
from jaxsight.repro.capturing.raised import Raised
from jaxsight.repro.emit import raising
from jaxsight.sourcerizer.errors import Unwritable
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


@dataclass(slots=True)
class _Class:
    """A stand-in for a class of the user's, `of` that name."""

    kind: str
    of: str
    name: str
    fields: list[str]
    is_static: bool = False

    def fits(self, keys: tuple[object, ...]) -> bool:
        """Return whether a node has these fields; learn the names of empty ones from it."""
        names = list(map(str, keys))
        if len(names) != len(self.fields):
            return False
        pairs = list(zip(self.fields, names, strict=True))
        if any(old != new and not _is_empty(old) and not _is_empty(new) for old, new in pairs):
            return False
        self.fields = [new if _is_empty(old) else old for old, new in pairs]
        return True


def _is_empty(name: str) -> bool:
    return name.startswith("field_")


class StandIns:
    """The classes that a module defines in place of the user's."""

    def __init__(self, names: ModuleNames) -> None:
        self._names = names
        self._classes: list[_Class] = []
        self._exceptions: dict[str, Sequence[str]] = {}

    def exception(self, raised: Raised) -> None:
        """Define a class for an exception, if it is of the user's own."""
        lines = raising.class_lines(raised)
        if lines:
            self._names.keep(raising.class_name(raised))
            self._exceptions[raising.class_name(raised)] = lines

    def name_of(self, node: Node) -> str:
        """Return the name of the class for a node."""
        if node.name == "Partial":
            raise Unwritable(node.name, "it holds a function")
        for class_ in self._classes:
            if class_.kind == node.kind and class_.of == node.name and class_.fits(node.keys):
                break
        else:
            name = self._names.fresh(identifier(node.name, "Node"))
            class_ = _Class(node.kind, node.name, name, list(map(str, node.keys)))
            self._classes.append(class_)
        class_.is_static = class_.is_static or bool(node.meta)
        return class_.name

    def statements(self) -> list[Raw]:
        """Return the definitions of the classes."""
        return [
            Raw(
                self._definition(class_.kind, class_.name, class_.fields, class_.is_static),
                frozenset({"collections" if class_.kind == "named" else "dataclasses"}),
            )
            for class_ in self._classes
        ] + [Raw([*lines]) for lines in self._exceptions.values()]

    def _definition(self, kind: str, name: str, fields: list[str], is_static: bool) -> list[str]:
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
        if is_static:
            static = 'dataclasses.field(default=0, metadata={"static": True})'
            lines.append(f"    static_parts: int = {static}")
        return lines if fields or is_static else [*lines, "    pass"]

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
