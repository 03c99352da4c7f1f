"""What code calls, and in which loops, as data that outlives its syntax tree.

`compiled_loops.py` follows these calls from statement to statement.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from jaxsight.source.analysis.local_names import FunctionLike
from jaxsight.source.analysis.syntax_trees import is_main_guard, is_short

_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(frozen=True, slots=True)
class NameOf:
    name: str


@dataclass(frozen=True, slots=True)
class ImportOf:
    """What an import inside a function binds, by its full name."""

    name: str


@dataclass(frozen=True, slots=True)
class AttributeOf:
    of: Value
    name: str


@dataclass(frozen=True, slots=True)
class ResultOf:
    """A call's result."""

    function: Value
    arguments: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of several values, or a container of them."""

    values: tuple[Value, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Defined:
    """A function that is defined here."""

    code: Code


@dataclass(frozen=True, eq=False, slots=True)
class DefinedClass:
    """A class that is defined here: `code` has its methods and attributes."""

    code: Code
    bases: tuple[Value, ...] = ()


Value = NameOf | ImportOf | AttributeOf | ResultOf | OneOf | Defined | DefinedClass


@dataclass(eq=False, slots=True)
class Code:
    """What the code of a function, of a class, or of a top-level statement does.

    * `bound`: the values that its names may have.
    * `attributes`: the values that attributes of its first parameter may have, and those of other
      objects, such as `f.jit`.
    * `repeated`: the calls in loops of many iterations; `calls` has all others.
    """

    parameters: tuple[str, ...] = ()
    bound: dict[str, list[Value]] = field(default_factory=dict)
    attributes: dict[str, list[Value]] = field(default_factory=dict)
    calls: list[ResultOf] = field(default_factory=list)
    repeated: list[ResultOf] = field(default_factory=list)
    returned: list[Value] = field(default_factory=list)


def code_of(body: Sequence[ast.stmt]) -> Code:
    """Return what top-level statements do."""
    reader = _Reader(Code())
    reader.block(body)
    return reader.code


class _Reader(ast.NodeVisitor):
    def __init__(self, code: Code) -> None:
        self.code = code
        self.depth = 0

    def block(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            self.visit(statement)

    def bind(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.code.bound.setdefault(name, []).append(value)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.bind(part, value)
            case ast.Starred(value=inner):
                self.bind(inner, value)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                known = name if owner == self.first else f"{owner}.{name}"
                self.code.attributes.setdefault(known, []).append(value)

    @property
    def first(self) -> str:
        return self.code.parameters[0] if self.code.parameters else ""

    def value(self, node: ast.expr) -> Value:
        """Return an expression's value; its calls are recorded when it is visited."""
        match node:
            case ast.Name(id=name):
                return NameOf(name)
            case ast.Attribute(value=inner, attr=name):
                return AttributeOf(self.value(inner), name)
            case ast.Call(func=function, args=args, keywords=keywords):
                values = tuple(self.value(arg) for arg in args)
                named = tuple((k.arg or "", self.value(k.value)) for k in keywords)
                return ResultOf(self.value(function), values, named)
            case ast.Subscript(value=inner) | ast.Starred(value=inner) | ast.Await(value=inner):
                return self.value(inner)
            case ast.NamedExpr(value=inner):
                return self.value(inner)
            case ast.Lambda():
                return Defined(_function(node))
            case ast.IfExp(body=body, orelse=orelse):
                return OneOf((self.value(body), self.value(orelse)))
            case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
                return OneOf(tuple(map(self.value, parts)))
            case ast.Dict(values=parts):
                return OneOf(tuple(map(self.value, parts)))
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
                return self.value(element)
            case ast.DictComp(value=element):
                return self.value(element)
        return OneOf()

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        value: Value = Defined(_function(node))
        for decorator in reversed(node.decorator_list):
            self.visit(decorator)
            value = ResultOf(self.value(decorator), (value,))
        self.code.bound.setdefault(node.name, []).append(value)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        reader = _Reader(Code())
        reader.block(node.body)
        bases = tuple(map(self.value, node.bases))
        self.code.bound.setdefault(node.name, []).append(DefinedClass(reader.code, bases))

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._import(alias.asname or top, alias.name if alias.asname else top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            if node.module and not node.level:
                self._import(alias.asname or alias.name, f"{node.module}.{alias.name}")

    def _import(self, name: str, full_name: str) -> None:
        self.code.bound.setdefault(name, []).append(ImportOf(full_name))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Leave out its body, which does not run yet."""

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.bind(target, self.value(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.bind(node.target, self.value(node.value))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self.bind(node.target, self.value(node.value))

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, self.value(item.context_expr))
        self.block(node.body)

    visit_AsyncWith = visit_With

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.code.returned.append(self.value(node.value))

    def visit_If(self, node: ast.If) -> None:
        if not is_main_guard(node.test):
            self.visit(node.test)
            self.block(node.body)
        self.block(node.orelse)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.bind(node.target, self.value(node.iter))
        self.repeat(node.body, long=not is_short(node.iter))
        self.block(node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        self.repeat([ast.Expr(node.test), *node.body], long=True)
        self.block(node.orelse)

    def repeat(self, body: Iterable[ast.stmt], *, long: bool) -> None:
        self.depth += long
        self.block(body)
        self.depth -= long

    def visit_ListComp(self, node: _Comprehension) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        self.bind(first.target, self.value(first.iter))
        long = not is_short(first.iter)
        self.depth += long
        for condition in first.ifs:
            self.visit(condition)
        for other in others:
            self.visit(other)
        for part in ("elt", "key", "value"):
            if (element := getattr(node, part, None)) is not None:
                self.visit(element)
        self.depth -= long

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        call = self.value(node)
        assert isinstance(call, ResultOf)
        (self.code.repeated if self.depth else self.code.calls).append(call)


def _function(function: FunctionLike) -> Code:
    arguments = function.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    reader = _Reader(Code(parameters=tuple(argument.arg for argument in every)))
    if isinstance(function, ast.Lambda):
        reader.visit(function.body)
        reader.code.returned.append(reader.value(function.body))
    else:
        reader.block(function.body)
    return reader.code
