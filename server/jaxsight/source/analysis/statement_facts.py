"""What statements bind, read and contain, to follow names through a text line by line."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jaxsight.source.analysis.syntax_trees import DEFINITIONS, annotations_of, blocks_of, root_name
from jaxsight.text.names import (
    bound_in,
    bound_in_scope,
    outer_expressions,
    parameters_of,
    read_in,
)

_DEEPEST = 100
"""Nesting of the statements whose facts are collected: CPython's lexer allows 100 (`MAXINDENT`)."""


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """The properties of a statement that tell how names flow through it.

    Those of a compound statement, except `blocks`, describe the text before its first block.
    """

    head: range
    """Its lines, from 0 in the chunk."""
    bound: frozenset[str]
    """The names that it binds or changes in place."""
    replaced: frozenset[str]
    """Those of them that get a new value, regardless of the earlier one."""
    names: frozenset[str]
    attributes: frozenset[str]
    """Names of the attributes that it reads, which identify methods."""
    blocks: tuple[tuple[StatementFacts, ...], ...] = ()
    scope: str = ""
    """What a function or class adds to the scope's name: `f.<locals>.`, `C.`."""
    function: str = ""
    parameters: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    """Its parameters and all names that its body binds."""
    returns: bool = False
    loops: bool = False
    decides: bool = False
    """Whether it determines if its blocks run."""


def facts_of(statement: ast.stmt, depth: int = 0) -> StatementFacts:
    """Return the properties of a statement.

    Raises:
        RecursionError: it is nested too deeply, such as hundreds of `elif`.
    """
    # An `elif` is nested without being indented: a chain of hundreds parses.
    if depth > _DEEPEST:
        raise RecursionError
    parts = _parts(statement)
    bound = set(bound_in_scope(*parts)).union(_changed(parts))
    blocks = tuple(
        tuple(facts_of(inner, depth + 1) for inner in block) for block in _blocks_of(statement)
    )
    scope = function = ""
    parameters: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    match statement:
        case (
            ast.FunctionDef(name=name, args=arguments)
            | ast.AsyncFunctionDef(name=name, args=arguments)
        ):
            bound.add(name)
            scope, function = f"{name}.<locals>.", name
            parameters = frozenset(parameters_of(arguments))
            inside = with_inner(blocks[0], "", into=False)
            own = parameters.union(*(inner.bound for _, inner in inside))
        case ast.ClassDef(name=name):
            bound.add(name)
            scope = f"{name}."
    # What a generator yields is seen by its caller, as a returned value is.
    yields = isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Yield | ast.YieldFrom
    )
    return StatementFacts(
        _head(statement),
        frozenset(bound),
        frozenset(_replaced(statement)),
        frozenset(read_in(*parts)),
        frozenset(n.attr for p in parts for n in ast.walk(p) if isinstance(n, ast.Attribute)),
        blocks,
        scope,
        function,
        parameters,
        own,
        returns=isinstance(statement, ast.Return) or yields,
        loops=isinstance(statement, ast.For | ast.AsyncFor | ast.While),
        decides=not scope and not isinstance(statement, ast.With | ast.AsyncWith),
    )


def with_inner(
    statements: Iterable[StatementFacts], scope: str, *, into: bool = True
) -> Iterator[tuple[str, StatementFacts]]:
    """Yield statements and the statements inside them, with the scope of each.

    Those inside functions and classes are omitted unless `into`.
    """
    for statement in statements:
        yield scope, statement
        if into or not statement.scope:
            for block in statement.blocks:
                yield from with_inner(block, scope + statement.scope, into=into)


def _head(statement: ast.stmt) -> range:
    """Return the lines of a statement (from 0), of a compound one those before its first block."""
    start = statement.lineno
    # Python 3.8 and newer count a definition from `def`, not from its first decorator.
    if isinstance(statement, DEFINITIONS):
        start = min([start, *(decorator.lineno for decorator in statement.decorator_list)])
    end = statement.end_lineno or start
    if blocks := _blocks_of(statement):
        end = max(statement.lineno, min(end, blocks[0][0].lineno - 1))
    return range(start - 1, end)


def _blocks_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    """Return the blocks of a compound statement."""
    if isinstance(statement, DEFINITIONS):
        return [statement.body]
    return [block for block in blocks_of(statement) if block]


def _parts(statement: ast.stmt) -> list[ast.AST]:
    """Return the parts of a statement besides its blocks; a simple statement is its own part."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [*outer_expressions(statement), *annotations_of(statement)]
        case ast.Try() | ast.TryStar():
            return [handler.type for handler in statement.handlers if handler.type is not None]
        case ast.Match():
            patterns = [case.pattern for case in statement.cases]
            return [statement.subject, *patterns, *(c.guard for c in statement.cases if c.guard)]
        case _ if _blocks_of(statement):
            return [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)]
    return [statement]


def _changed(parts: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names whose values are changed in place: `x` for `x.a[0] = …`."""
    for part in parts:
        for node in ast.walk(part):
            match node:
                case (
                    ast.Subscript(ctx=ast.Store() | ast.Del())
                    | ast.Attribute(ctx=ast.Store() | ast.Del())
                ):
                    if root := root_name(node):
                        yield root


def _replaced(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a simple statement gives new values, regardless of the earlier ones."""
    match statement:
        case ast.Assign(targets=targets):
            for target in targets:
                yield from bound_in(target)
        case ast.AnnAssign(target=target, value=ast.expr()):
            yield from bound_in(target)
