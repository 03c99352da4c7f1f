"""The form of a top-level statement: a function, a class, an import or an assignment."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jaxsight.source.analysis.syntax_trees import dotted_name, first_name

_HOOKS = frozenset({"__init_subclass__", "__set_name__", "__prepare__", "__class_getitem__"})
"""Methods that run when a class is created or subscripted."""
_INACTIVE_KEYWORDS = frozenset({"frozen", "eq", "order", "kw_only", "total", "pytree"})
"""Keywords of a class that only choose what is generated for it."""


@dataclass(frozen=True, slots=True)
class StatementForm:
    """The form of a single statement, as far as roles depend on it.

    One of kind `assign` assigns one value to one name.
    """

    kind: Literal["def", "class", "import", "assign", "other"]
    wrapped_by: tuple[str, ...] = ()
    """Decorators, or the function whose call is assigned."""
    wraps: tuple[str, ...] = ()
    """The names that this call takes."""
    bases: tuple[str, ...] = ()
    active: bool = False
    """Whether creating the class, or one derived from it, runs code.

    It has a metaclass, keywords or hooks (`__init_subclass__`, `__set_name__`).
    """


def form_of(body: Sequence[ast.stmt]) -> StatementForm:
    """Return the form of a top-level statement; `other` for several on a line."""
    if len(body) != 1:
        return StatementForm("other")
    match body[0]:
        case (
            ast.FunctionDef(decorator_list=decorators)
            | ast.AsyncFunctionDef(decorator_list=decorators)
        ):
            return StatementForm("def", wrapped_by=tuple(map(_wrapper, decorators)))
        case ast.ClassDef() as definition:
            return _class_form(definition)
        case ast.Import() | ast.ImportFrom():
            return StatementForm("import")
        case ast.Assign(targets=[ast.Name()], value=value):
            return _assignment_form(value)
        case ast.AnnAssign(target=ast.Name(), value=ast.expr() as value):
            return _assignment_form(value)
    return StatementForm("other")


def _assignment_form(value: ast.expr) -> StatementForm:
    match value:
        case ast.Call(func=function, args=args, keywords=keywords):
            values = (*args, *(keyword.value for keyword in keywords))
            names = tuple(filter(None, map(dotted_name, values)))
            return StatementForm("assign", (_wrapper(function),), names)
        case ast.Lambda():
            return StatementForm("assign", ("lambda",))
    return StatementForm("assign")


def _class_form(definition: ast.ClassDef) -> StatementForm:
    keywords = {keyword.arg for keyword in definition.keywords}
    decorators = list(definition.decorator_list)
    active = bool(keywords - _INACTIVE_KEYWORDS)
    stack: list[ast.stmt] = list(definition.body)
    while stack:
        match stack.pop():
            case ast.FunctionDef(name=name, decorator_list=inner):
                active |= name in _HOOKS
                decorators += inner
            case ast.ClassDef():
                active = True
    names = tuple(map(_wrapper, decorators))
    local = {s.name for s in definition.body if isinstance(s, ast.FunctionDef)}
    return StatementForm(
        "class",
        wrapped_by=tuple(name for name in names if first_name(name) not in local),
        # `Generic` for `Generic[T]`
        bases=tuple(
            dotted_name(base.value if isinstance(base, ast.Subscript) else base) or "?"
            for base in definition.bases
        ),
        active=active,
    )


def _wrapper(decorator: ast.expr) -> str:
    """Return the name of a wrapping function: `jit` for `@partial(jit, …)`; `?` if it has none."""
    match decorator:
        case ast.Call(func=function, args=[first, *_]) if dotted_name(function).endswith("partial"):
            return dotted_name(first) or "?"
        case ast.Call(func=function):
            return dotted_name(function) or "?"
    return dotted_name(decorator) or "?"
