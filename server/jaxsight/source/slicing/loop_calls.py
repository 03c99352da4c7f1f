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
                self.bind_name(name, value)
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

    def visit(self, node: ast.AST) -> None:
        """Read a node; what is not named here does what is in it."""
        match node:
            case ast.Name() | ast.Constant() | ast.Lambda() | ast.AnnAssign(value=None):
                pass  # the body of a lambda does not run yet
            case ast.Call():
                self.generic_visit(node)
                call = self.value(node)
                assert isinstance(call, ResultOf)
                (self.code.repeated if self.depth else self.code.calls).append(call)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self.comprehension(node)
            case ast.Assign(targets=targets, value=value):
                self.visit(value)
                for target in targets:
                    self.bind(target, self.value(value))
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
            ):
                self.visit(value)
                self.bind(target, self.value(value))
            case ast.Return(value=ast.expr() as value):
                self.visit(value)
                self.code.returned.append(self.value(value))
            case ast.If(test=test, body=body, orelse=orelse):
                if not is_main_guard(test):
                    self.visit(test)
                    self.block(body)
                self.block(orelse)
            case ast.For(iter=items) | ast.AsyncFor(iter=items):
                self.visit(items)
                self.bind(node.target, self.value(items))
                self.repeat(node.body, long=not is_short(items))
                self.block(node.orelse)
            case ast.While(test=test, body=body, orelse=orelse):
                self.repeat([ast.Expr(test), *body], long=True)
                self.block(orelse)
            case ast.With(items=contexts, body=body) | ast.AsyncWith(items=contexts, body=body):
                for context in contexts:
                    self.visit(context.context_expr)
                    if context.optional_vars is not None:
                        self.bind(context.optional_vars, self.value(context.context_expr))
                self.block(body)
            case _:
                self.definition(node)

    def definition(self, node: ast.AST) -> None:
        """Read what binds the names of functions, classes and imports."""
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                made: Value = Defined(_function(node))
                for decorator in reversed(node.decorator_list):
                    self.visit(decorator)
                    made = ResultOf(self.value(decorator), (made,))
                self.bind_name(name, made)
            case ast.ClassDef(name=name, body=body, bases=bases):
                reader = _Reader(Code())
                reader.block(body)
                self.bind_name(name, DefinedClass(reader.code, tuple(map(self.value, bases))))
            case ast.Import(names=names):
                for alias in names:
                    top = alias.name.partition(".")[0]
                    full_name = alias.name if alias.asname else top
                    self.bind_name(alias.asname or top, ImportOf(full_name))
            case ast.ImportFrom(module=str(module), level=0, names=names):
                for alias in names:
                    self.bind_name(alias.asname or alias.name, ImportOf(f"{module}.{alias.name}"))
            case _:
                self.generic_visit(node)

    def bind_name(self, name: str, value: Value) -> None:
        self.code.bound.setdefault(name, []).append(value)

    def repeat(self, body: Iterable[ast.stmt], *, long: bool) -> None:
        self.depth += long
        self.block(body)
        self.depth -= long

    def comprehension(self, node: _Comprehension) -> None:
        first, *others = node.generators
        self.visit(first.iter)
        self.bind(first.target, self.value(first.iter))
        long = not is_short(first.iter)
        self.depth += long
        for inner in (*first.ifs, *others):
            self.visit(inner)
        for part in ("elt", "key", "value"):
            if (element := getattr(node, part, None)) is not None:
                self.visit(element)
        self.depth -= long


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
