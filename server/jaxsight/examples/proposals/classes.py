"""What the classes of a module and of its imports look like: fields, arguments, methods."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.examples.proposals.sources import DefinedName, ModuleScope
from jaxsight.text.names import with_defaults

_NOT_A_FIELD = re.compile(r"\b(?:ClassVar|InitVar)\b")
_HIGHEST = 3
"""Classes above a class that are searched for fields, a choice: higher ones rarely have any."""


@dataclass(frozen=True, slots=True)
class RequiredArgument:
    """An argument that making an object requires."""

    name: str
    annotation: str


def first_member(node: ast.ClassDef) -> str:
    """Return the first member of an enumeration; empty for other classes."""
    if not any(re.search(r"(?:Enum|Flag)$", base) for base in _bases(node)):
        return ""
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                return name
    return ""


def is_abstract(node: ast.ClassDef) -> bool:
    """Return whether a class is not meant to be instantiated."""
    return any(base.rpartition(".")[2] in ("ABC", "Protocol") for base in _bases(node)) or any(
        "abstractmethod" in ast.unparse(decorator)
        for method in _methods(node)
        for decorator in method.decorator_list
    )


def constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    """Return the `__init__` of a class."""
    return next((m for m in _methods(node) if m.name == "__init__"), None)


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    return (statement for statement in node.body if isinstance(statement, ast.FunctionDef))


def _bases(node: ast.ClassDef) -> list[str]:
    """Return the names of the bases of a class: `Generic` for `Generic[T]`."""
    return [ast.unparse(base).partition("[")[0] for base in node.bases]


def arguments_of(
    definition: DefinedName, names: ModuleScope, depth: int = 0
) -> Iterator[RequiredArgument]:
    """Yield the arguments that making an object needs: of `__init__`, or its fields."""
    node = definition.node
    if not isinstance(node, ast.ClassDef):
        return
    if (made := constructor(node)) is not None:
        yield from required(made.args, 1)
        return
    given: set[str] = set()
    defaults = {
        s.target.id
        for s in node.body
        if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name) and _has_default(s.value)
    }
    for written in _bases(node):
        above = ModuleScope(definition.source, names.library).find(written)
        if above is not None and depth < _HIGHEST and above.node is not node:
            for argument in arguments_of(above, names, depth + 1):
                given.add(argument.name)
                if argument.name not in defaults:
                    yield argument
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind):
                text = ast.unparse(kind)
                is_field = name not in given and not _NOT_A_FIELD.search(text)
                if is_field and name not in defaults:
                    yield RequiredArgument(name, text)


def required(arguments: ast.arguments, skipped: int) -> Iterator[RequiredArgument]:
    """Yield the parameters without a default."""
    for argument, default in with_defaults(arguments)[skipped:]:
        annotation = argument.annotation
        if default is None:
            written = ast.unparse(annotation) if annotation is not None else ""
            yield RequiredArgument(argument.arg, written)


def _has_default(value: ast.expr | None) -> bool:
    match value:
        case None:
            return False
        case ast.Call(func=func, keywords=keywords) if ast.unparse(func).endswith("field"):
            named = {keyword.arg for keyword in keywords}
            return bool(named & {"default", "default_factory", "init"})
    return True
