"""Rewrite a chunk so that running it records the value of every expression.

Each expression that is read is wrapped in a call of the recording function, and names that a
statement binds are recorded after it.
The arguments of calls are recorded at the start of functions that callers outside may call.
Only the tree is rewritten: positions stay the same, so JAX's source columns, tracebacks and
`__doc__` are those of the text.
This must never change the program's results: expressions that would need care (callees, decorators,
defaults, annotations, patterns, f-strings, `super()`) are not wrapped.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Literal

from jaxsight.tracer.observation import call_entries
from jaxsight.tracer.observation.call_entries import Entry

NAME = "__jaxsight_seen__"
"""The global (or builtin) by which instrumented code calls `Recorder.record`.

It ends in `__`, so that it is never mangled.
"""

Kind = Literal["expression", "target", "parameter"]

_DEEPEST = 60
"""Maximum nesting that is observed: the rewriting and the compiler recurse, and generated sums may
be deep.
"""

_WRAPPED = (
    ast.Attribute, ast.Await, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Dict, ast.DictComp,
    ast.IfExp, ast.List, ast.ListComp, ast.Name, ast.NamedExpr, ast.Subscript, ast.Tuple,
    ast.UnaryOp, ast.Yield,
)  # fmt: skip


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
    """A recording call.

    The value of `y = x + 1` is that of the expression and that of the target: two places.
    `scope` is the number of the function around it in the chunk, -1 for module-level statements.
    """

    scope: int
    ranges: list[SourceRange] = field(default_factory=list)
    entry: Entry | None = None
    """Set if it records the arguments of calls, which have no place."""


def instrument(tree: ast.Module, first: int) -> list[Site]:
    """Rewrite `tree` in place, and return the sites; their numbers start from `first`."""
    rewriting = _Rewriting(first)
    tree.body = rewriting.block(tree.body)
    return rewriting.sites


class _Rewriting(ast.NodeTransformer):
    def __init__(self, first: int) -> None:
        self.first = first
        self.sites: list[Site] = []
        self.scope: int | None = -1
        self.scopes = 0
        self.classes: tuple[str, ...] | None = ()
        """What is around the current node, as in qualified names; `None` in a function's class."""
        self.depth = 0
        self.locals: frozenset[str] = frozenset()
        """The variables of the functions around the current node, and some of functions inside."""

    def visit(self, node: ast.AST) -> ast.AST:
        if self.depth >= _DEEPEST:
            return node
        self.depth += 1
        try:
            visited: ast.AST = super().visit(node)
        finally:
            self.depth -= 1
        if self.scope is None or not isinstance(visited, _WRAPPED) or visited is not node:
            return visited
        if not isinstance(getattr(node, "ctx", _LOAD), ast.Load) or _is_constant(node):
            return node
        assert isinstance(node, ast.expr)
        return self.recorded(node, _range_of(node, "expression"))

    def recorded(self, node: ast.expr, source_range: SourceRange) -> ast.expr:
        number = self.first + len(self.sites)
        assert self.scope is not None
        self.sites.append(Site(self.scope, [source_range]))
        # `ast.copy_location` takes five times as long.
        line, column = node.lineno, node.col_offset
        ends = {"end_lineno": node.end_lineno, "end_col_offset": node.end_col_offset}
        name = ast.Name(NAME, _LOAD, lineno=line, col_offset=column, **ends)
        site = ast.Constant(number, None, lineno=line, col_offset=column, **ends)
        return ast.Call(name, [site, node], [], lineno=line, col_offset=column, **ends)

    def also(self, value: ast.expr | None, target: ast.expr) -> None:
        """Add the place of `target` to the site of `value`, if it has one."""
        match value:
            case ast.Call(func=ast.Name(id=name), args=[ast.Constant(value=int(number)), _]) if (
                name == NAME
            ):
                self.sites[number - self.first].ranges.append(_range_of(target, "target"))

    def block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return the rewritten statements, each followed by recordings of names that it binds."""
        out: list[ast.stmt] = []
        for statement in statements:
            visited = self.visit(statement)
            assert isinstance(visited, ast.stmt)
            out.append(visited)
            if self.scope is None:
                continue
            match statement:
                case ast.Assign(targets=targets):
                    for target in targets:
                        if isinstance(target, ast.Tuple | ast.List):
                            out += self.bound(target)
                case ast.AugAssign(target=ast.Name() as target):
                    out += self.bound(target)
                case _:
                    pass
        return out

    def bound(self, target: ast.expr) -> list[ast.stmt]:
        """Return statements that record the names that `target` binds."""
        return [
            self.recording(node.id, node, _range_of(node, "target"))
            for node in ast.walk(target)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]

    def recording(self, name: str, at: ast.expr | ast.arg, source_range: SourceRange) -> ast.stmt:
        read = ast.copy_location(ast.Name(name, _LOAD), at)
        return ast.copy_location(ast.Expr(self.recorded(read, source_range)), at)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer, self.scope = self.scope, self.scopes
        self.scopes += 1
        depth, self.depth = self.depth, min(self.depth, _DEEPEST // 2)
        keep = 1 if ast.get_docstring(node, clean=False) is not None else 0
        docstring, body = node.body[:keep], node.body[keep:]
        parameters = self.entry(node)
        around = self.classes
        self.classes = (*around, node.name, "<locals>") if around is not None else None
        outer_locals, self.locals = self.locals, self.locals | _bound_in(node)
        for arg in _arguments(node.args):
            end = arg.col_offset + len(arg.arg.encode())
            source_range = SourceRange("parameter", arg.lineno, arg.col_offset, arg.lineno, end)
            parameters.append(self.recording(arg.arg, arg, source_range))
        node.body = [*docstring, *parameters, *self.block(body)]
        self.scope, self.depth, self.classes = outer, depth, around
        self.locals = outer_locals
        return node

    def entry(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
        """Return the statement that records the arguments of a call, if calls are recorded."""
        if self.classes is None or not isinstance(node, ast.FunctionDef):
            return []
        entry = call_entries.entry_of(node, self.classes)
        if entry is None:
            return []
        number = self.first + len(self.sites)
        assert self.scope is not None
        self.sites.append(Site(self.scope, entry=entry))
        return [call_entries.statement(node, entry, number)]

    visit_FunctionDef = visit_AsyncFunctionDef = function

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        outer, self.scope = self.scope, self.scopes
        self.scopes += 1
        outer_locals, self.locals = self.locals, self.locals | _bound_in(node)
        node.body = self.expression(node.body)
        self.scope, self.locals = outer, outer_locals
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self.scope = self.scope, None
        classes = self.classes
        is_named = classes is not None and "<locals>" not in classes
        self.classes = (*(classes or ()), node.name) if is_named else None
        node.body = self.block(node.body)
        self.scope, self.classes = outer, classes
        return node

    def expression(self, node: ast.expr) -> ast.expr:
        visited = self.visit(node)
        assert isinstance(visited, ast.expr)
        return visited

    def part(self, node: ast.expr) -> ast.expr:
        """Rewrite the inside of `node`, but do not record `node` itself."""
        outer, self.depth = self.depth, self.depth + 1
        if self.depth < _DEEPEST:
            super().visit(node)
        self.depth = outer
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node.func:
            case ast.Name(id="super"):
                return node
            case func if _root(func) in self.locals:
                # Most likely a module: `model(x)`, `self.attention(x)`.
                node.func = self.expression(func)
            case ast.Name():
                pass
            case func:
                self.part(func)
        node.args = [self.expression(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.expression(keyword.value)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self.expression(node.value)
        if isinstance(node.slice, ast.Tuple):
            self.part(node.slice)
        else:
            node.slice = self.expression(node.slice)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        node.targets = [self.expression(target) for target in node.targets]
        node.value = self.expression(node.value)
        for target in node.targets:
            if isinstance(target, ast.Name | ast.Attribute):
                self.also(node.value, target)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.expression(node.value)
            if isinstance(node.target, ast.Name | ast.Attribute):
                self.also(node.value, node.target)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        node.value = self.expression(node.value)
        self.also(node.value, node.target)
        return node

    def loop(self, node: ast.For | ast.AsyncFor) -> ast.AST:
        node.iter = self.expression(node.iter)
        bound = [] if self.scope is None else self.bound(node.target)
        node.body = [*bound, *self.block(node.body)]
        node.orelse = self.block(node.orelse)
        return node

    visit_For = visit_AsyncFor = loop

    def context(self, node: ast.With | ast.AsyncWith) -> ast.AST:
        bound: list[ast.stmt] = []
        for manager in node.items:
            manager.context_expr = self.expression(manager.context_expr)
            if manager.optional_vars is not None and self.scope is not None:
                bound += self.bound(manager.optional_vars)
        node.body = [*bound, *self.block(node.body)]
        return node

    visit_With = visit_AsyncWith = context

    def conditional(self, node: ast.If | ast.While) -> ast.AST:
        node.test = self.expression(node.test)
        node.body = self.block(node.body)
        node.orelse = self.block(node.orelse)
        return node

    visit_If = visit_While = conditional

    def attempt(self, node: ast.Try | ast.TryStar) -> ast.AST:
        node.body = self.block(node.body)
        for handler in node.handlers:
            handler.body = self.block(handler.body)
        node.orelse = self.block(node.orelse)
        node.finalbody = self.block(node.finalbody)
        return node

    visit_Try = visit_TryStar = attempt

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        if node.guard is not None:
            node.guard = self.expression(node.guard)
        node.body = self.block(node.body)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self.expression(node.iter)
        node.ifs = [self.expression(test) for test in node.ifs]
        return node

    def untouched(self, node: ast.AST) -> ast.AST:
        return node

    visit_Delete = untouched
    visit_Global = untouched
    visit_Import = untouched
    visit_ImportFrom = untouched
    visit_JoinedStr = untouched
    visit_Nonlocal = untouched
    visit_TemplateStr = untouched
    visit_TypeAlias = untouched


_LOAD = ast.Load()


def _range_of(node: ast.expr, kind: Kind) -> SourceRange:
    end_line = node.end_lineno if node.end_lineno is not None else node.lineno
    end_column = node.end_col_offset if node.end_col_offset is not None else node.col_offset
    return SourceRange(kind, node.lineno, node.col_offset, end_line, end_column)


def _bound_in(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """Return the parameters of a function, and the names that it or a function inside assigns."""
    names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    stored = (name.id for name in names if isinstance(name.ctx, ast.Store))
    return frozenset((*(arg.arg for arg in _arguments(node.args)), *stored))


def _root(node: ast.expr) -> str:
    """Return `a` for `a` and `a.b.c`; empty for other nodes."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _arguments(args: ast.arguments) -> list[ast.arg]:
    variadic = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *variadic]


def _is_constant(node: ast.AST | None, depth: int = 0) -> bool:
    """Return whether the compiler folds `node`, which wrapping a part of it would prevent."""
    if depth > _DEEPEST:
        return False
    match node:
        case ast.Constant():
            return True
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case ast.BinOp(left=left, right=right):
            parts = [right, left]
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            parts = elements
        case ast.Dict(keys=keys, values=values):
            return all(_is_constant(part, depth + 1) for part in (*keys, *values))
        case _:
            return False
    return all(_is_constant(part, depth + 1) for part in parts)
