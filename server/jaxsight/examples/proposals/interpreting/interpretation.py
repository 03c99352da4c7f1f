"""Interpret a function's body on abstract values, to see what it demands of its parameters.

Functions that are defined or called in the body are not looked into: how they are called is
observed.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import suppress

from jaxsight.examples.proposals.interpreting import conditions, operations, uses
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
    UnknownValue,
    Value,
    facts_of,
)
from jaxsight.source.abstract_interpretation.interpreter import (
    AbstractInterpreter,
    AbstractState,
    Comprehension,
)

_MOST = 6000
"""Expressions that are interpreted, a choice: those of some hundred lines, a moment of the loop."""


class _Enough(Exception):
    """The function is too long to be interpreted further."""


class _Values(AbstractState[Value]):
    """The values of variables; what parameters are is noted in `Evidence`, on all ways alike."""

    def either(self, _path: str, one: Value | None, other: Value | None) -> Value | None:
        return _better(other, one) if one is not None and other is not None else one or other


def _better(first: Value, second: Value) -> Value:
    """Return the one of two values that tells more: what the code computes, the first of both."""
    return second if isinstance(first, Const | UnknownValue | Param) else first


class BodyInterpreter(AbstractInterpreter[_Values, Value]):
    """Interprets one function; `aliases` are the imports of its module."""

    ITERATIONS = 1  # evidence is no lattice: a second iteration would count uses twice
    SKIPS_LOOPS = False

    def __init__(
        self, aliases: Mapping[str, str], variables: Mapping[str, ast.expr] | None = None
    ) -> None:
        """`variables` are what the module's variables are assigned: `SIZE = 8`."""
        super().__init__(_Values())
        self.aliases = aliases
        self.variables = variables or {}
        self.links: Links = []
        self.steps = 0

    def interpret(self, node: ast.FunctionDef, parameters: Mapping[str, Value]) -> None:
        """Interpret a function whose parameters have these values."""
        self.state, self.is_reached, self.steps = _Values(dict(parameters)), True, 0
        self.links.clear()
        with suppress(_Enough, RecursionError):
            self.run_function(node)

    def statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assert(test=test):
                conditions.learn(self.links, self.evaluate, test, holds=True)
            case ast.If(test=test, body=body) if any(isinstance(s, ast.Raise) for s in body):
                conditions.learn(self.links, self.evaluate, test, holds=False)
                self.run(node.orelse)
            case ast.If(test=ast.Compare(left=ast.Name(id=name), ops=[ast.Is()])):
                # The parameter that is `None` in the branch keeps its value after that.
                value = self.state.names.get(name)
                super().statement(node)
                if isinstance(value, Param) and value.evidence.optional:
                    self.state.names[name] = value
            case ast.Match(subject=subject, cases=cases):
                facts_of(self.evaluate(subject)).choices.extend(
                    repr(case.pattern.value.value)
                    for case in cases
                    if isinstance(case.pattern, ast.MatchValue)
                    and isinstance(case.pattern.value, ast.Constant)
                    and isinstance(case.pattern.value.value, str)
                )
                super().statement(node)
            case ast.AugAssign(target=ast.Attribute() | ast.Subscript(), value=value):
                self.evaluate(value)  # a reference is changed so, too
            case _:
                super().statement(node)

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.state.names[node.name] = UNKNOWN

    def test(self, node: ast.expr) -> Value:
        """Interpret the condition of a branch: ranks that it asks for are likely."""
        match node:
            case ast.Name(id=name) if isinstance(value := self.state.names.get(name), Param):
                value.evidence.tested = True
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.test(operand)
            case ast.BoolOp(values=values):
                for inner in values:
                    self.test(inner)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                match self.evaluate(left), self.evaluate(right):
                    case RankOf(shape), Const(int() as rank):
                        shape.suggest(rank)
                    case Param(evidence), Const(constant):
                        conditions.choose(evidence, constant)
            case _:
                return self.evaluate(node)
        return UNKNOWN

    def assign(self, target: ast.expr, value: Value, _source: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                self.state.names[name] = value
                if isinstance(value, Size) and not value.dim.find().name:
                    value.dim.find().name = name
            case ast.Subscript():
                self.evaluate(target)

    def unpacked(
        self, value: Value, targets: Sequence[ast.expr], _source: ast.expr | None
    ) -> Sequence[Value]:
        starred = any(isinstance(target, ast.Starred) for target in targets)
        return uses.unpacked(value, len(targets), starred=starred)

    def iterate(self, target: ast.expr, value: Value, _iterable: ast.expr) -> None:
        self.bind(target, uses.item_of(value), None)

    def augmented(self, node: ast.AugAssign, old: Value, new: Value) -> Value:
        return self._binary(old, node.op, new)

    def either(self, values: Sequence[Value]) -> Value:
        told: Value = UNKNOWN
        for value in reversed(values):
            told = _better(value, told)
        return told

    def evaluate(self, node: ast.expr) -> Value:
        self.steps += 1
        if self.steps > _MOST:
            raise _Enough
        return super().evaluate(node)

    def comprehension(self, _node: Comprehension) -> Value:
        return UNKNOWN

    def expression(self, node: ast.expr) -> Value:
        match node:
            case ast.Constant(value=constant):
                return Const(constant)
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=inner, attr=attr):
                return uses.attribute(self.evaluate(inner), attr)
            case ast.Subscript(value=inner, slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                return uses.indexed(self.evaluate(inner), [self._part(part) for part in parts])
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._binary(self.evaluate(left), op, self.evaluate(right))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.evaluate(operand))
            case ast.Compare():
                return self._comparison(node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return self._display(elements)
            case ast.BoolOp(values=values) | ast.Dict(values=values):
                return ([UNKNOWN] + [self.evaluate(item) for item in values])[-1]
            case ast.Lambda():
                return Dotted("lambda")
        return UNKNOWN

    def _name(self, name: str) -> Value:
        if name in self.state.names:
            return self.state.names[name]
        match self.variables.get(name):
            case ast.Constant(value=constant):
                return Const(constant)
        return Dotted(self.aliases.get(name, name))

    def _part(self, part: ast.expr) -> Value | slice:
        """Return a part of a subscript; a slice has constant bounds or none."""
        if not isinstance(part, ast.Slice):
            return self.evaluate(part)
        bounds: list[int | None] = []
        for bound in (part.lower, part.upper):
            value = self.evaluate(bound) if bound is not None else Const(None)
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
                values.append(self.evaluate(element))
                continue
            inner = self.evaluate(element.value)
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
                return uses.matmul(left, right)
            case ((ShapeOf() | Items()), ast.Add(), (ShapeOf() | Items())):
                return uses.joined(left, right)
        if isinstance(left, RankOf) and not isinstance(op, ast.Add | ast.Sub):
            return UNKNOWN
        return uses.arithmetic(self.links, left, right, is_sum=isinstance(op, ast.Add))

    def _comparison(self, node: ast.Compare) -> Value:
        value = self.evaluate(node.left)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            other = self.evaluate(comparator)
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
        function = self.evaluate(node.func)
        arguments: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                inner = self.evaluate(argument.value)
                arguments += inner.values if isinstance(inner, Items) else [inner]
            else:
                arguments.append(self.evaluate(argument))
        keywords = {
            keyword.arg: self.evaluate(keyword.value)
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
    BodyInterpreter(aliases).interpret(node, parameters)
    return found
