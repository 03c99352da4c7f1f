"""Pytrees as expressions, with stand-ins for the user's classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight_repro.capturing.call_tree.records import Container, Structure
from jaxsight_repro.failures import Raised
from jaxsight_source.errors import Unwritable
from jaxsight_source.text import exprs
from jaxsight_source.text.exprs import NONE, call, dict_, list_, public, quoted, subscript, tuple_
from jaxsight_source.text.names import ModuleNames, identifier
from jaxsight_source.text.statements import Raw
from jaxsight_source.values.spelling import value


@dataclass(slots=True)
class _Class:
    """A stand-in for a class of the user's, `of` that name."""

    kind: Container
    of: str
    name: str
    fields: list[str]
    is_static: bool = False

    def fits(self, node: Structure) -> bool:
        """Return whether a node is of it; learn the names of empty fields from it."""
        names = list(map(str, node.keys))
        if (self.kind, self.of, len(self.fields)) != (node.kind, node.name, len(names)):
            return False
        pairs = list(zip(self.fields, names, strict=True))
        if any(old != new and not _is_empty(old) and not _is_empty(new) for old, new in pairs):
            return False
        self.fields = [new if _is_empty(old) else old for old, new in pairs]
        return True

    @property
    def definition(self) -> Raw:
        """The statements that define it."""
        if self.kind == "named":
            listed = ", ".join(f'"{field}"' for field in self.fields)
            line = f'{self.name} = collections.namedtuple("{self.name}", [{listed}])'
            return Raw(["", "", line], frozenset({"collections"}))
        fields = [f"    {field}: object" for field in self.fields]
        if self.is_static:
            static = 'dataclasses.field(default=0, metadata={"static": True})'
            fields.append(f"    static_parts: int = {static}")
        head = ["@jax.tree_util.register_dataclass", "@dataclasses.dataclass"]
        lines = ["", "", *head, f"class {self.name}:", *(fields or ["    pass"])]
        return Raw(lines, frozenset({"dataclasses"}))


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
        lines = class_lines(raised)
        if lines:
            self._names.keep(class_name(raised))
            self._exceptions[class_name(raised)] = lines

    def name_of(self, node: Structure) -> str:
        """Return the name of the class for a node."""
        if node.name == "Partial":
            raise Unwritable(node.name, "it holds a function")
        for class_ in self._classes:
            if class_.fits(node):
                break
        else:
            name = self._names.fresh(identifier(node.name, "Node"))
            class_ = _Class(node.kind, node.name, name, list(map(str, node.keys)))
            self._classes.append(class_)
        class_.is_static = class_.is_static or bool(node.meta)
        return class_.name

    def statements(self) -> list[Raw]:
        """Return the definitions of the classes."""
        classes = [class_.definition for class_ in self._classes]
        return classes + [Raw([*lines]) for lines in self._exceptions.values()]

    def expr(self, node: Structure, leaves: Iterator[ast.expr]) -> ast.expr:
        """Return the expression of a pytree, which takes its leaves."""
        if node.kind == "leaf":
            return next(leaves)
        parts = [self.expr(child, leaves) for child in node.children]
        match node.kind:
            case "none":
                return NONE
            case "tuple":
                return tuple_(parts)
            case "list":
                return list_(parts)
            case "dict":
                return dict_(zip(map(value, node.keys), parts, strict=True))
            case _:
                static = {"static_parts": ast.Constant(node.meta)} if node.meta else {}
                return call(self.name_of(node), *parts, **static)


def part(expr: ast.expr, node: Structure, index: int) -> ast.expr:
    """Return the expression of a child of a pytree."""
    match node.kind:
        case "dict":
            return subscript(expr, value(node.keys[index]))
        case "class" | "named":
            return ast.Attribute(expr, str(node.keys[index]))
        case _:
            return subscript(expr, ast.Constant(index))


def base_of(node: Structure, index: int, around: str) -> str:
    """Return a base name for a child of a pytree."""
    key = node.keys[index] if index < len(node.keys) else None
    if isinstance(key, str):
        return identifier(key, around)
    return f"{around}_{index}"


def path_of(path: str) -> ast.expr:
    """Return the public name of a function as modules write it."""
    module, _, name = path.rpartition(".")
    if not module:
        return ast.Name(name)
    if module in exprs.SHORT:
        return public(f"{exprs.SHORT[module]}.{name}")
    return public(path, "" if module in exprs.AT_HAND or module in ("jax", "np") else module)


def class_name(raised: Raised) -> str:
    """Return the name of an exception's class without what it is nested in."""
    return raised.name.rpartition(".")[2]


def class_lines(raised: Raised) -> Sequence[str]:
    """Return the lines of a class that stands for an exception's own; none for a built-in one.

    Its name, module and text are the same, so its failure is.
    """
    if raised.is_builtin:
        return ()
    name = class_name(raised)
    lines = ["", "", f"class {name}({raised.base}):"]
    lines.append('    """Stand in for the exception class of this name in the program."""')
    if raised.name != name:
        lines += ["", f"    __qualname__ = {raised.name!r}"]
    if raised.module not in ("__main__", "builtins"):
        lines += ["", f"    __module__ = {raised.module!r}"]
    if raised.is_text:
        lines += ["", "    def __str__(self):", "        return self.args[0]"]
    return lines


def expression(raised: Raised) -> str:
    """Return the call that makes an exception."""
    args = [quoted(arg) if isinstance(arg, str) else repr(arg) for arg in raised.args]
    return f"{class_name(raised)}({', '.join(args)})"
