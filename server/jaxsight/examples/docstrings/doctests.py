"""Examples from doctests: the calls of a function in its own docstring.

Names that the same docstring assigned before are replaced by their values, so that a call is
self-contained. Nothing is run, and a doctest of another form is not reported.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.examples.inlining import inlined
from jaxsight.examples.notation.chunk_text import ChunkText
from jaxsight.source.analysis.syntax_trees import dotted_name, first_name
from jaxsight.source.functions import Docstring, Function
from jaxsight.source.limits import docstring_problem
from jaxsight.source.text import Range
from jaxsight.text.names import bound_in_scope, free_in
from jaxsight.text.parsing import expression_in, module_in

_PROMPT = re.compile(r"[ \t]*>>> (?P<code>.*)")
_CONTINUED = re.compile(r"[ \t]*\.\.\.(?: (?P<code>.*))?")


@dataclass(frozen=True, slots=True)
class DoctestCall:
    """A call of the function, with names of the doctest replaced; `names` are the others."""

    source: str
    names: tuple[str, ...]
    range: Range


def calls_in(function: Function) -> tuple[DoctestCall, ...]:
    """Return the distinct calls of a function in the doctests of its docstring, in order.

    Methods have none, because their instance is not among the arguments.
    """
    if function.docstring is None or ">>>" not in function.docstring.text:
        return ()
    if docstring_problem(function.docstring.text):
        return ()
    if function.kind not in ("function", "staticmethod"):
        return ()
    name = function.qualname.rpartition(".")[2]
    values: dict[str, ast.expr | None] = {}
    calls: dict[str, DoctestCall] = {}
    for statement, range in _statements(function.docstring):
        if _configures(statement):
            break  # the following calls are meant for other options than the module's
        for call in _calls_of(name, statement):
            if first_name(dotted_name(call.func)) in values:
                # A method of a value of the doctest, such as `x.sum()` in `sum`.
                continue
            whole = inlined(call, values)
            if whole is None or not isinstance(whole, ast.Call):
                continue
            alone = ast.Call(ast.Name(name, ast.Load()), whole.args, whole.keywords)
            source = ast.unparse(alone)
            names = tuple(n for n in free_in(source) if n != name)
            calls.setdefault(source, DoctestCall(source, names, range))
        _remember(statement, values)
    return tuple(calls.values())


def _statements(docstring: Docstring) -> Iterator[tuple[ast.stmt, Range]]:
    source = ChunkText(docstring.text, docstring.start)
    line = 0
    while line < source.line_count:
        prompt = _PROMPT.fullmatch(source.line(line))
        first = line
        line += 1
        if prompt is None:
            continue
        code = [prompt["code"]]
        while line < source.line_count and (more := _CONTINUED.fullmatch(source.line(line))):
            code.append(more["code"] or "")
            line += 1
        start = source.line_bounds(first)[0] + prompt.start("code")
        range = source.range(start, source.line_bounds(line - 1)[1])
        if (tree := module_in("\n".join(code))) is not None:
            yield from ((statement, range) for statement in tree.body)


def _calls_of(name: str, statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield calls of `name` or `something.name` in a statement.

    Calls inside lambdas and comprehensions, whose arguments may be their variables, are skipped.
    """
    if not isinstance(
        statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Assert
    ):
        return
    waiting: deque[ast.AST] = deque([statement])
    while waiting:
        node = waiting.popleft()
        match node:
            case (
                ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp()
            ):
                continue
            case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if (
                called == name and dotted_name(node.func)
            ):
                yield node
        waiting.extend(ast.iter_child_nodes(node))


def _configures(statement: ast.stmt) -> bool:
    """Return whether a statement sets an option of JAX, such as `jax.config.update(…)`."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute() as changed)):
            return "config.update" in ast.unparse(changed)
        case ast.Assign(targets=[ast.Attribute() as changed]):
            return ".config." in ast.unparse(changed)
        case _:
            return False


def _remember(statement: ast.stmt, values: dict[str, ast.expr | None]) -> None:
    """Record the values of names after a statement; `None` for one without an expression."""
    match statement:
        case ast.Import():
            for alias in statement.names:
                _import(alias, alias.name, "", values)
        case ast.ImportFrom(module=str(module), level=0):
            for alias in statement.names:
                _import(alias, module, alias.name, values)
        case ast.ImportFrom():
            for alias in statement.names:
                values.pop(alias.asname or alias.name, None)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            values[name] = inlined(value, values)
        case _:
            values |= dict.fromkeys(bound_in_scope(statement))


_PLAIN = frozenset({"functools", "itertools", "jax", "math", "numpy", "operator"})
"""Packages that a doctest may import by any name, because the import has no side effects."""


def _import(
    alias: ast.alias, module: str, attribute: str, values: dict[str, ast.expr | None]
) -> None:
    """Record what an import binds: the module itself, an attribute of it, or its outermost package.

    For other packages, the file itself is assumed to import the same object by this name.
    """
    name = alias.asname or (attribute or module.partition(".")[0])
    root = module.partition(".")[0]
    if root not in _PLAIN or (not attribute and name == root and alias.asname is None):
        values.pop(name, None)
        return
    if name == _USUAL.get(f"{module}.{attribute}".rstrip(".")):
        values.pop(name, None)
        return
    text = f"__import__({module!r}, fromlist=['_'])"
    if attribute:
        text = f"{text}.{attribute}"
    values[name] = expression_in(text)


_USUAL = {"jax.numpy": "jnp", "numpy": "np"}
"""Names that a doctest may use without an import."""
