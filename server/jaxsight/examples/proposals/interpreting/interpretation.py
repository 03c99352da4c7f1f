"""Interpret a function's body on abstract values, to see what it demands of its parameters.

Both branches of an `if` are interpreted, and a loop's body once. Functions that are defined or
called in the body are not looked into: how they are called is observed.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.examples.proposals.interpreting import conditions, linear, operations, uses
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Const,
    Dotted,
    Evidence,
    Items,
    Links,
    Param,
    RankOf,
    ShapeOf,
    Size,
    Unknown,
    Value,
    facts_of,
)

_MOST = 6000
"""Expressions that are interpreted, a choice: those of some hundred lines, a moment of the loop."""


class _Enough(Exception):
    """The function is too long to be interpreted further."""


@dataclass(eq=False, slots=True)
class BodyInterpreter:
    """Interprets one function; `aliases` are the imports of its module."""

    aliases: Mapping[str, str]
    variables: Mapping[str, ast.expr] = field(default_factory=dict)
    """What the module's variables are assigned: `SIZE = 8`."""
    links: Links = field(default_factory=list)
    scope: dict[str, Value] = field(default_factory=dict)
    steps: int = 0

    def run(self, node: ast.FunctionDef, parameters: Mapping[str, Value]) -> None:
        """Interpret a function whose parameters have these values."""
        self.scope, self.steps = dict(parameters), 0
        self.links.clear()
        try:
            self._block(node.body)
        except (_Enough, RecursionError):
            return

    # Statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Return(value=ast.expr() as value) | ast.Expr(value=value):
                self.value(value)
            case ast.Assign(targets=targets, value=value):
                result = self.value(value)
                for target in targets:
                    self._assign(target, result)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.value(value))
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                left = self.scope.get(name, UNKNOWN)
                self.scope[name] = self._binary(left, op, self.value(value))
            case ast.FunctionDef(name=name):
                self.scope[name] = UNKNOWN
            case ast.If():
                self._if(statement)
            case ast.Assert(test=test):
                conditions.learn(self.links, self.value, test, holds=True)
            case ast.For(target=target, iter=iterable, body=body):
                self._assign(target, uses.item_of(self.value(iterable)))
                self._block(body)
            case ast.While(test=test, body=body):
                self.value(test)
                self._block(body)
            case ast.With(body=body) | ast.Try(body=body):
                self._block(body)
            case ast.Match(subject=subject, cases=cases):
                facts = facts_of(self.value(subject))
                for case in cases:
                    match case.pattern:
                        case ast.MatchValue(value=ast.Constant(value=str(choice))):
                            facts.choices.append(repr(choice))
                    self._block(case.body)

    def _if(self, statement: ast.If) -> None:
        test, body = statement.test, statement.body
        if any(isinstance(inner, ast.Raise) for inner in body):
            conditions.learn(self.links, self.value, test, holds=False)
        else:
            kept = self._optional_in(test)
            self._test(test)
            self._block(body)
            self.scope |= kept
        self._block(statement.orelse)

    def _optional_in(self, test: ast.expr) -> dict[str, Value]:
        """Return the parameter that is `None` in a branch, and keeps its value after that."""
        match test:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]):
                value = self.scope.get(name)
                if isinstance(value, Param) and value.evidence.optional:
                    return {name: value}
        return {}

    def _test(self, test: ast.expr) -> None:
        """Interpret the condition of a branch: ranks that it asks for are likely."""
        match test:
            case ast.Name(id=name) if isinstance(value := self.scope.get(name), Param):
                value.evidence.tested = True
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._test(operand)
            case ast.BoolOp(values=values):
                for inner in values:
                    self._test(inner)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                match self.value(left), self.value(right):
                    case RankOf(shape), Const(int() as rank):
                        shape.suggest(rank)
                    case Param(evidence), Const(constant):
                        conditions.choose(evidence, constant)
            case _:
                self.value(test)

    def _assign(self, target: ast.expr, value: Value) -> None:
        """Bind a target."""
        match target:
            case ast.Name(id=name):
                self.scope[name] = value
                if isinstance(value, Size) and not value.dim.find().name:
                    value.dim.find().name = name
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                starred = any(isinstance(target, ast.Starred) for target in targets)
                values = uses.unpacked(value, len(targets), starred=starred)
                for inner, item in zip(targets, values, strict=True):
                    self._assign(inner, item)
            case ast.Starred(value=inner):
                self._assign(inner, UNKNOWN)
            case ast.Subscript():
                self.value(target)

    # Expressions

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression."""
        self.steps += 1
        if self.steps > _MOST:
            raise _Enough
        match node:
            case ast.Constant(value=constant):
                return Const(constant)
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=inner, attr=attr):
                return uses.attribute(self.value(inner), attr)
            case ast.Subscript(value=inner, slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return uses.indexed(self.value(inner), [self._part(part) for part in parts])
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(self.value(left), op, self.value(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.value(operand))
            case ast.Compare():
                return self._comparison(node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return self._display(elements)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._test(test)
                first, second = self.value(body), self.value(orelse)
                return second if isinstance(first, Const | Unknown) else first
            case ast.NamedExpr(target=target, value=inner):
                value = self.value(inner)
                self._assign(target, value)
                return value
            case ast.BoolOp(values=values) | ast.Dict(values=values):
                for item in values[:-1]:
                    self.value(item)
                return self.value(values[-1]) if values else UNKNOWN
        return UNKNOWN

    def _name(self, name: str) -> Value:
        if name in self.scope:
            return self.scope[name]
        match self.variables.get(name):
            case ast.Constant(value=constant):
                return Const(constant)
        return Dotted(self.aliases.get(name, name))

    def _part(self, part: ast.expr) -> Value | slice:
        """Return a part of a subscript; a slice has constant bounds or none."""
        if not isinstance(part, ast.Slice):
            return self.value(part)
        bounds: list[int | None] = []
        for bound in (part.lower, part.upper):
            value = self.value(bound) if bound is not None else Const(None)
            uses.as_integer(value)
            constant = value.value if isinstance(value, Const) else None
            bounds.append(constant if isinstance(constant, int) else None)
        limits = sum(bound is not None for bound in (part.lower, part.upper))
        known = part.step is None and limits == sum(bound is not None for bound in bounds)
        return slice(bounds[0], bounds[1], None if known else 1)

    def _display(self, elements: list[ast.expr]) -> Value:
        values: list[Value] = []
        for element in elements:
            if not isinstance(element, ast.Starred):
                values.append(self.value(element))
                continue
            inner = self.value(element.value)
            dims = uses.sizes_of(inner) if isinstance(inner, ShapeOf) else None
            if isinstance(inner, Items):
                values += inner.values
            elif dims is not None:
                values += map(Size, dims)
            else:
                return UNKNOWN
        return Items(tuple(values))

    def _unary(self, op: ast.unaryop, operand: Value) -> Value:
        match op, operand:
            case ast.USub(), Const(int() | float() as number):
                return Const(-number)
            case ast.Not(), Param(evidence):
                evidence.tested = True
                return UNKNOWN
            case _, Param(evidence):
                evidence.number += 1
                return Arr(evidence.shape)
        return operand

    def _binary(self, left: Value, op: ast.operator, right: Value) -> Value:
        """Return the value of an operation on two operands."""
        match left, op, right:
            case _, ast.MatMult(), _:
                return linear.matmul(left, right)
            case ((ShapeOf() | Items()), ast.Add(), (ShapeOf() | Items())):
                return uses.joined(left, right)
        if isinstance(left, RankOf) and not isinstance(op, ast.Add | ast.Sub):
            return UNKNOWN
        return uses.arithmetic(self.links, left, right, is_sum=isinstance(op, ast.Add))

    def _comparison(self, node: ast.Compare) -> Value:
        value = self.value(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            other = self.value(comparator)
            if isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
                conditions.among(value, other)
                return UNKNOWN
            if isinstance(other, Const) and isinstance(other.value, str):
                if isinstance(value, Param):
                    conditions.choose(value.evidence, other.value)
                return UNKNOWN
            value = uses.arithmetic(self.links, value, other)
        return value

    def _call(self, node: ast.Call) -> Value:
        function = self.value(node.func)
        arguments: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                inner = self.value(argument.value)
                arguments += inner.values if isinstance(inner, Items) else [inner]
            else:
                arguments.append(self.value(argument))
        keywords = {
            keyword.arg: self.value(keyword.value)
            for keyword in node.keywords
            if keyword.arg is not None
        }
        match function:
            case Param(evidence):
                evidence.called = True
            case Dotted():
                call = uses.LibraryCall(self.links, arguments, keywords)
                return operations.result_of(function, call)
        return UNKNOWN


def uses_in(node: ast.FunctionDef, aliases: Mapping[str, str]) -> dict[str, Evidence]:
    """Return what the body of a function shows of its parameters."""
    found = {a.arg: Evidence(a.arg) for a in (*node.args.args, *node.args.kwonlyargs)}
    parameters = {name: Param(evidence) for name, evidence in found.items()}
    BodyInterpreter(aliases).run(node, parameters)
    return found
