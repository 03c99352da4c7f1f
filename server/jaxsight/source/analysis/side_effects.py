"""The possible side effects of executing code, besides binding names, from its syntax tree.

This module does not follow a name to another statement or resolve names: `chunk_roles` does. Code
whose effects the text does not show is `opaque`, never guessed. A function's body is read only on
demand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from jaxsight.source.analysis.local_names import (
    ARRAY_UPDATES,
    CONTAINER_METHODS,
    RESULT,
    VALUE_ATTRIBUTES,
    VALUE_METHODS,
    FunctionLike,
    LocalNames,
    local_names_of,
)
from jaxsight.source.analysis.syntax_trees import (
    DEFINITIONS,
    annotations_of,
    blocks_of,
    dotted_name,
    first_name,
    is_at,
    is_iterator,
    is_main_guard,
    is_short,
    root_name,
    statements_in,
    targets_of,
)
from jaxsight.text.names import bound_in

_SCOPES = frozenset({"named_scope", "ensure_compile_time_eval"})
"""Context managers of JAX that change nothing which other code sees."""

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(slots=True)
class SideEffects:
    """The side effects of code while it runs.

    Names are the module's, dotted as written (`jnp.sum`, `CFG.update`).

    * `calls`: functions that are called, or that may be called by a function they are passed to.
    * `reads`: names whose values are used; `attributes`: attributes of module names.
    * `changes`: names whose values are assigned into or deleted.
    * `carried`: those of `calls` in a loop of many iterations whose arguments include a name that
      the statement rebinds.
    """

    calls: set[str] = field(default_factory=set)
    handed: set[str] = field(default_factory=set)
    """Names passed to calls as arguments: if they are functions, they may be called."""
    reads: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    carried: set[str] = field(default_factory=set)
    opaque: str = ""
    """The first construct with unknown effects; empty if there is none."""


def effects_of(body: Sequence[ast.stmt]) -> SideEffects:
    """Return the effects of executing top-level statements.

    The functions that they define are not called by that.
    """
    effects = SideEffects()
    _Visitor(effects).block(body)
    return effects


def effects_of_call(function: FunctionLike) -> SideEffects:
    """Return the effects of calling a function, including functions defined inside it."""
    effects = SideEffects()
    visitor = _Visitor(effects, function)
    if isinstance(function, ast.Lambda):
        visitor.visit(function.body)
    else:
        visitor.block(function.body)
    return effects


class _Visitor:
    """Visits code once, from top to bottom, and assumes the worst where it is not certain.

    Its methods are named as those of an `ast.NodeVisitor`.
    """

    def __init__(self, record: SideEffects, function: FunctionLike | None = None) -> None:
        self.record = record
        self.inside = function is not None
        """Whether the code is that of a function."""
        self.locals = LocalNames() if function is None else local_names_of(function)
        self.depth = 0
        """Nesting depth of long loops."""
        self.targets: set[str] = set()
        """Names that the current statement binds."""
        # Calling it runs nothing; whoever awaits the result is not known.
        if isinstance(function, ast.AsyncFunctionDef):
            self.unknown("a coroutine")

    def unknown(self, construct: str) -> None:
        self.record.opaque = self.record.opaque or construct

    def is_local(self, name: str) -> bool:
        return first_name(name) in self.locals.all

    def visit(self, node: ast.AST | None) -> None:
        """Visit an expression, if any: one stack frame for each level without a method."""
        method = getattr(self, f"visit_{type(node).__name__}", None)
        if method is not None:
            method(node)
        elif node is not None:
            for child in ast.iter_child_nodes(node):
                self.visit(child)

    def block(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.targets = {name for t in targets_of(statement) for name in bound_in(t)}
            self.statement(statement)

    # Statements

    def statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Import() | ast.ImportFrom():
                if self.inside:
                    self.unknown("an import in a function")
            case ast.Assign(targets=targets, value=value):
                self.value(value)
                self.target(*targets)
            case ast.AnnAssign(target=target, value=value):
                self.annotations(statement)
                if value is not None:
                    self.value(value)
                    self.target(target)
            case ast.AugAssign(target=target, value=value):
                self.visit(value)
                own = self.locals.all - self.locals.parameters
                # A parameter may be an array or a list of the caller.
                if not isinstance(target, ast.Name) or target.id not in own:
                    self.change(target)  # `+=` changes a list or an array in place
            case ast.Delete(targets=targets):
                for each in targets:
                    if not (self.inside and isinstance(each, ast.Name)):
                        self.change(each)
            case ast.Expr(value=ast.Call() as value):
                self.value(value)
            case ast.Expr(value=value) | ast.Return(value=value):
                self.visit(value)
            case ast.Assert(test=test, msg=message):
                self.visit(test)
                self.visit(message)
            case ast.Raise(exc=error):
                self.visit(error)
                if not self.inside:
                    self.unknown("`raise`")
            case _:
                self.compound(statement)

    def compound(self, statement: ast.stmt) -> None:
        """Visit a statement with blocks; others have unknown effects, or none."""
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.function(statement)
            case ast.ClassDef():
                self.class_of(statement)
            case ast.For() | ast.While():
                is_long = isinstance(statement, ast.While) or not is_short(statement.iter)
                self.visit(statement.test if isinstance(statement, ast.While) else statement.iter)
                self.target(*targets_of(statement))
                self.depth += is_long
                self.block(statement.body)
                self.depth -= is_long
                self.block(statement.orelse)
            case ast.If(test=test, body=body, orelse=orelse):
                if self.inside or not is_main_guard(test):
                    self.visit(test)
                    self.block(body)
                self.block(orelse)
            case ast.With(items=contexts, body=body):
                for context in contexts:
                    self.context(context)
                self.block(body)
            case ast.Try() | ast.TryStar():
                for handler in statement.handlers:
                    self.visit(handler.type)
                for block in blocks_of(statement):
                    self.block(block)
            case ast.Match(subject=subject, cases=cases):
                self.visit(subject)
                for case in cases:
                    self.visit(case.guard)
                    self.block(case.body)
                if not self.inside and any(
                    isinstance(node, ast.MatchClass)  # which may call its methods
                    for case in cases
                    for node in ast.walk(case.pattern)
                ):
                    self.unknown("a class pattern")
            case _:
                name = type(statement).__name__
                if name not in ("Pass", "Break", "Continue", "TypeAlias"):
                    self.unknown(f"`{name.lower()}`")

    def function(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in function.decorator_list:
            self.decorator(decorator)
        for default in (*function.args.defaults, *function.args.kw_defaults):
            self.visit(default)
        self.annotations(function)
        if self.inside:
            # It rebinds a name of the function around it, which is no name of the module.
            if any(isinstance(s, ast.Nonlocal) for s in statements_in(function.body)):
                self.unknown("`nonlocal`")
            self.inner(function).block(function.body)

    def class_of(self, definition: ast.ClassDef) -> None:
        for decorator in definition.decorator_list:
            self.decorator(decorator)
        if self.inside:
            self.unknown("a class in a function")
            return
        for argument in (*definition.bases, *definition.keywords):
            self.visit(argument)
        visitor = _Visitor(self.record)
        visitor.locals.all = {
            *(n for s in definition.body for t in targets_of(s) for n in bound_in(t)),
            *(s.name for s in definition.body if isinstance(s, DEFINITIONS)),
        }
        visitor.block(definition.body)

    def context(self, context: ast.withitem) -> None:
        self.visit(context.context_expr)
        match context.context_expr:
            case ast.Call(func=function) if dotted_name(function).rpartition(".")[2] in _SCOPES:
                pass
            case _:
                self.unknown("`with`")
        self.target(*filter(None, [context.optional_vars]))

    def visit_Lambda(self, function: ast.Lambda) -> None:
        self.inner(function).visit(function.body)

    def inner(self, function: FunctionLike) -> _Visitor:
        """Return the visitor of a function inside this code, whose names it can use."""
        visitor = _Visitor(self.record, function)
        visitor.locals.all |= self.locals.all
        visitor.locals.functions |= self.locals.functions
        return visitor

    def decorator(self, decorator: ast.expr) -> None:
        """Visit a decorator: `chunk_roles` decides by its name whether it only wraps."""
        if not isinstance(decorator, ast.Call):
            if not dotted_name(decorator):
                self.unknown("a decorator")
            return
        name = dotted_name(decorator.func)
        if not name or self.is_local(name):
            self.unknown("a decorator")
        for argument in (*decorator.args, *(keyword.value for keyword in decorator.keywords)):
            if not dotted_name(argument):
                self.visit(argument)

    def annotations(self, statement: ast.stmt) -> None:
        """Visit annotations that contain calls, which run when the function is defined."""
        for annotation in annotations_of(statement):
            if any(isinstance(node, ast.Call) for node in ast.walk(annotation)):
                self.visit(annotation)

    def value(self, value: ast.expr) -> None:
        """Visit a value that a statement binds or drops.

        An iterator among such values is exhausted by its first reader.
        """
        # Which of two later statements reads it first would depend on which of them run.
        if is_iterator(value) and not self.inside:
            self.unknown("an iterator")
        self.visit(value)

    def target(self, *targets: ast.expr) -> None:
        for target in targets:
            match target:
                case ast.Name():
                    pass
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    self.target(*parts)
                case ast.Starred(value=value):
                    self.target(value)
                case _:
                    self.change(target)

    def change(self, target: ast.expr) -> None:
        """Record an assignment into a target, or its deletion."""
        for node in ast.walk(target):
            if isinstance(node, ast.Subscript):
                self.visit(node.slice)
        root = root_name(target)
        if root and self.is_local(root):
            if root not in self.locals.containers:
                self.unknown(f"a change of `{root}`")
        elif root:
            self.record.changes.add(root)
        else:
            self.unknown("an assignment")

    # Expressions

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and not self.is_local(node.id):
            self.record.reads.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = dotted_name(node)
        if name and not isinstance(node.value, ast.Subscript):
            root = first_name(name)
            if not self.is_local(root):
                self.record.attributes.add(name)
                self.record.reads.add(root)
                return
        if name and (result := self.locals.result(name)):
            self.record.calls.add(result)
            return
        self.visit(node.value)
        if node.attr not in VALUE_ATTRIBUTES:
            self.unknown(f"`.{node.attr}`")

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        if not self.inside:
            self.unknown(f"`{node.target.id} :=`")

    def visit_Yield(self, _node: ast.expr) -> None:
        self.unknown("a generator")

    visit_YieldFrom = visit_Await = visit_Yield

    def visit_ListComp(self, node: _Comprehension) -> None:
        visitor = _Visitor(self.record)
        visitor.inside = self.inside
        bound = {name for g in node.generators for name in bound_in(g.target)}
        visitor.locals = replace(
            self.locals,
            all=self.locals.all | bound,
            makers={name: m for name, m in self.locals.makers.items() if name not in bound},
        )
        visitor.depth = self.depth + 1
        for generator in node.generators:
            visitor.visit(generator.iter)
            for condition in generator.ifs:
                visitor.visit(condition)
        for part in ("elt", "key", "value"):
            visitor.visit(getattr(node, part, None))

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Call(self, call: ast.Call) -> None:
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        if any(keyword.arg == "out" for keyword in call.keywords):
            self.unknown("`out=`")
        for argument in arguments:
            self.argument(argument.value if isinstance(argument, ast.Starred) else argument)
        match call.func:
            case ast.Name(id=name):
                if not self.is_local(name):
                    self.called(name, arguments)
                elif name not in self.locals.functions:
                    self.unknown(f"`{name}()`")
            case ast.Attribute() as method:
                self.method(method, arguments)
            case ast.Call(func=inner) as wrapping:
                # `jax.vmap(f)(x)`: arguments of the inner call may be called.
                self.visit_Call(wrapping)
                if not dotted_name(inner):
                    self.unknown("a call of a call's result")
            case ast.Lambda() as function:
                self.visit_Lambda(function)
            case function:
                self.visit(function)
                self.unknown("a call of a value")

    def argument(self, argument: ast.expr) -> None:
        name = dotted_name(argument)
        if name and not isinstance(argument, ast.Subscript) and not self.is_local(name):
            self.record.handed.add(name)
        self.visit(argument)

    def method(self, method: ast.Attribute, arguments: Sequence[ast.expr]) -> None:
        """Visit the call of a method, or of a module's function."""
        name, owner = dotted_name(method), method.value
        if name and not isinstance(owner, ast.Subscript) and not self.is_local(name):
            self.called(name, arguments)
            self.record.reads.add(first_name(name))
            return
        self.visit(owner)
        match owner:
            case ast.Subscript() if owned := dotted_name(owner):
                name = f"{owned}.{method.attr}"
            case ast.Call(func=function) if owned := dotted_name(function):
                name = f"{owned}{RESULT}.{method.attr}"
        is_own = isinstance(owner, ast.Name) and owner.id in self.locals.containers
        if (
            method.attr in VALUE_METHODS
            or (method.attr in ARRAY_UPDATES and is_at(owner))
            or (method.attr in CONTAINER_METHODS and is_own)
        ):
            return
        if name and (result := self.locals.result(name)):
            self.called(result, arguments)
        else:
            self.unknown(f"`.{method.attr}()`")

    def called(self, name: str, arguments: Sequence[ast.expr]) -> None:
        self.record.calls.add(name)
        if self.depth:
            names = {n.id for a in arguments for n in ast.walk(a) if isinstance(n, ast.Name)}
            if names & self.targets:
                self.record.carried.add(name)
