"""Rewrite user code so that running it records the values of expressions, and calls.

Each expression that is read is wrapped in a call of the recording function, and names that a
statement binds are recorded after it. Functions tell of their calls when they begin: those of
modules, methods of their classes, and functions in both.
This must never change the program's results: expressions that would need care (callees, decorators,
defaults, annotations, patterns, f-strings, `super()`) are not wrapped.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

from jaxsight.rewriting import nodes
from jaxsight.rewriting.nodes import LOAD
from jaxsight.text.names import parameters_of

SEEN, CALLED = "__jaxsight_seen__", "__jaxsight_called__"
"""The globals (or builtins) that get a site with its value, and that of a function that begins.

They end in `__`, so that they are never mangled.
"""
LOCALS = "<locals>"
"""Follows a function's name in the qualified names of those in it."""

Kind = Literal["expression", "target", "parameter"]

_DEEPEST = 60
"""Maximum nesting that is rewritten: the rewriting and the compiler recurse, and generated sums may
be deep.
"""
_WRAPPED = (
    ast.Attribute, ast.Await, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Dict, ast.DictComp,
    ast.IfExp, ast.List, ast.ListComp, ast.Name, ast.NamedExpr, ast.Subscript, ast.Tuple,
    ast.UnaryOp, ast.Yield,
)  # fmt: skip
_LEFT = frozenset({"annotation", "ctx", "op", "ops", "pattern", "type"})
"""Parts of nodes that are left as they are."""


@dataclass(frozen=True, slots=True)
class SourceRange:
    """The place of a site's value: lines from 1 in the chunk, UTF-8 columns, the end exclusive."""

    kind: Kind
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(slots=True)
class Site:
    """A recording call; that of a function which tells of its calls has no place.

    The value of `y = x + 1` is that of the expression and that of the target: two places.
    `scope` is the number of the function around it in the chunk, -1 for module-level statements.
    """

    scope: int
    ranges: list[SourceRange] = field(default_factory=list)


class Rewriter(ast.NodeVisitor):
    """Rewrites a tree in place; the numbers of its sites begin at `first`."""

    def __init__(self, *, expressions: bool = True) -> None:
        """`expressions`: whether the values of expressions and calls are recorded."""
        self.first = 0
        self.sites: list[Site] = []
        self._expressions = expressions
        self._reports = expressions
        """Whether calls of functions are reported; not in classes in functions."""
        self._reads = expressions
        """Whether expressions, and the bodies of functions, are visited."""
        self._scope: int | None = -1 if expressions else None
        """That of the sites; `None` where values are not recorded."""
        self._scopes = itertools.count()
        self._names: tuple[str, ...] = ()
        """The functions, each followed by `LOCALS`, and classes around the current node."""
        self._depth = 0
        self._locals: frozenset[str] = frozenset()
        """The variables of the functions around the current node, and some of functions inside."""

    def rewrite(self, tree: ast.Module) -> None:
        """Rewrite the tree of a module, or of a part of it."""
        tree.body = self.block(tree.body)

    @contextlib.contextmanager
    def within(self, **state: object) -> Iterator[None]:
        """Rewrite a part of the tree with other values of attributes."""
        before = {name: getattr(self, name) for name in state}
        vars(self).update(state)
        yield
        vars(self).update(before)

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return rewritten statements."""
        return [new for statement in statements for new in self.statement(statement)]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        """Return a rewritten statement, followed by recordings of names that it binds."""
        visited = self.visit(node)
        match node:
            case ast.Assign(targets=targets):
                several = [each for each in targets if isinstance(each, ast.Tuple | ast.List)]
                return [visited, *self._bound(*several)]
            case ast.AugAssign(target=ast.Name() as target):
                return [visited, *self._bound(target)]
            case _:
                return [visited]

    def visit(self, node: ast.AST, *, whole: bool = True) -> Any:
        """Return a rewritten node; if not `whole`, its own value is not recorded."""
        if self._depth >= _DEEPEST or not (self._reads or isinstance(node, ast.stmt)):
            return node
        self._depth += 1
        visited = super().visit(node)
        self._depth -= 1
        if not whole or self._scope is None or not isinstance(node, _WRAPPED):
            return visited
        if not isinstance(getattr(node, "ctx", LOAD), ast.Load) or _is_constant(node):
            return visited
        return self._recorded(visited, _range_of(node, "expression"))

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for part in node._fields:
            if part in _LEFT:
                continue
            value = getattr(node, part, None)
            if isinstance(value, list):
                is_block = value and isinstance(value[0], ast.stmt)
                visited = (self.visit(v) if isinstance(v, ast.AST) else v for v in value)
                value[:] = self.block(value) if is_block else visited
            elif isinstance(value, ast.AST):
                setattr(node, part, self.visit(value))
        return node

    def visit_Name(self, node: ast.AST) -> ast.AST:
        return node

    visit_Constant = visit_Name

    def _recorded(self, node: ast.expr, source_range: SourceRange) -> ast.expr:
        assert self._scope is not None
        # `ast.copy_location` takes five times as long.
        line, column = node.lineno, node.col_offset
        ends = {"end_lineno": node.end_lineno, "end_col_offset": node.end_col_offset}
        number = self._site(Site(self._scope, [source_range]))
        name = ast.Name(SEEN, LOAD, lineno=line, col_offset=column, **ends)
        site = ast.Constant(number, None, lineno=line, col_offset=column, **ends)
        return ast.Call(name, [site, node], [], lineno=line, col_offset=column, **ends)

    def _site(self, site: Site) -> int:
        self.sites.append(site)
        return self.first + len(self.sites) - 1

    def _also(self, value: ast.expr | None, *targets: ast.expr) -> None:
        """Add the places of targets to the site of `value`, if it has one."""
        match value:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=int(number)), _]) if (
                name == SEEN
            ):
                ranges = self.sites[number - self.first].ranges
                plain = (each for each in targets if isinstance(each, ast.Name | ast.Attribute))
                ranges += (_range_of(target, "target") for target in plain)

    def _bound(self, *targets: ast.expr) -> list[ast.stmt]:
        """Return statements that record the names that targets bind."""
        if self._scope is None:
            return []
        return [
            self._recording(node.id, node, _range_of(node, "target"))
            for target in targets
            for node in ast.walk(target)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]

    def _recording(self, name: str, at: ast.expr | ast.arg, source_range: SourceRange) -> ast.stmt:
        read = ast.copy_location(nodes.name(name), at)
        return ast.copy_location(ast.Expr(self._recorded(read, source_range)), at)

    def _function(self, node: nodes.Function | ast.Lambda) -> AbstractContextManager[None]:
        scope = next(self._scopes) if self._expressions else None
        return self.within(_scope=scope, _locals=self._locals | _bound_in(node))

    def visit_FunctionDef(self, node: nodes.Function) -> ast.AST:
        names, depth = (*self._names, node.name, LOCALS), min(self._depth, _DEEPEST // 2)
        head: list[ast.stmt] = []
        if self._reports and is_reported(node):
            report = nodes.call(CALLED, self._site(Site(-1)))
            head.append(nodes.placed(ast.Expr(report), node))
        if self._reads:
            with self._function(node), self.within(_names=names, _depth=depth):
                head += self._parameters(node)
                node.body = self.block(node.body)
        nodes.begin(node, head)
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def _parameters(self, node: nodes.Function) -> Iterator[ast.stmt]:
        """Yield statements that record the parameters of a function."""
        for arg in nodes.parameters(node) if self._scope is not None else ():
            start, end = arg.col_offset, arg.col_offset + len(arg.arg.encode())
            place = SourceRange("parameter", arg.lineno, start, arg.lineno, end)
            yield self._recording(arg.arg, arg, place)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        with self._function(node):
            node.body = self.visit(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        reports = self._reports and LOCALS not in self._names
        with self.within(_scope=None, _names=(*self._names, node.name), _reports=reports):
            node.body = self.block(node.body)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        # A local is most likely a module: `model(x)`, `self.attention(x)`.
        node.func = self.visit(node.func, whole=_root(node.func) in self._locals)
        node.args = [self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.visit(node.value)
        node.slice = self.visit(node.slice, whole=not isinstance(node.slice, ast.Tuple))
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        self._also(node.value, *node.targets)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign | ast.NamedExpr) -> ast.AST:
        self.generic_visit(node)
        self._also(node.value, node.target)
        return node

    visit_NamedExpr = visit_AnnAssign

    def visit_For(self, node: ast.For | ast.AsyncFor) -> ast.AST:
        orelse, node.orelse = node.orelse, []
        self.generic_visit(node)
        node.body[:0] = self._bound(node.target)
        node.orelse = self.block(orelse)
        return node

    visit_AsyncFor = visit_For

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.AST:
        self.generic_visit(node)
        node.body[:0] = self._bound(*filter(None, (item.optional_vars for item in node.items)))
        return node

    visit_AsyncWith = visit_With

    def unrecorded(self, node: ast.AST) -> ast.AST:
        """Visit a node in which no values are recorded."""
        with self.within(_expressions=False, _scope=None):
            return self.generic_visit(node)

    visit_Delete = visit_JoinedStr = visit_TemplateStr = visit_TypeAlias = unrecorded


def is_reported(node: nodes.Function) -> bool:
    """Return whether calls of a function are reported."""
    special = node.name.startswith("__") and node.name.endswith("__")
    is_plain = not special or node.name in ("__call__", "__init__")
    return isinstance(node, ast.FunctionDef) and is_plain


def is_class(names: tuple[str, ...]) -> bool:
    """Return whether the innermost of some functions and classes is a class."""
    return bool(names) and names[-1] != LOCALS


def _range_of(node: ast.expr, kind: Kind) -> SourceRange:
    end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return SourceRange(kind, node.lineno, node.col_offset, *end)


def _bound_in(node: nodes.Function | ast.Lambda) -> frozenset[str]:
    """Return the parameters of a function, and the names that it or a function inside assigns."""
    names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    stored = (name.id for name in names if isinstance(name.ctx, ast.Store))
    return frozenset((*parameters_of(node.args), *stored))


def _root(node: ast.expr) -> str:
    """Return `a` for `a` and `a.b.c`; empty for other nodes."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_constant(node: ast.AST | None, depth: int = 0) -> bool:
    """Return whether the compiler folds `node`, which wrapping a part of it would prevent."""
    if depth > _DEEPEST:
        return False
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp() | ast.BinOp() | ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
            # From the right: sums are nested on the left.
            parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
            return all(_is_constant(part, depth + 1) for part in reversed(parts))
        case _:
            return False
