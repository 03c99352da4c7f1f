"""Interpret a function's body on abstract values, to see what it demands of its parameters.

Both branches of an `if` are interpreted, a loop's body once, and functions of the module that it
calls as if they were written in its place.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.examples.proposals.interpreting import (
    conditions,
    control,
    layers,
    linear,
    operations,
    uses,
)
from jaxsight.examples.proposals.interpreting.evidence import (
    UNKNOWN,
    Arr,
    Closure,
    Const,
    Dotted,
    Evidence,
    Items,
    Layer,
    Param,
    RankOf,
    ShapeOf,
    Size,
    Unknown,
    Value,
    facts_of,
)
from jaxsight.examples.proposals.interpreting.shapes import Shape

_DEEPEST = 3
"""Calls of the module's functions that are looked into, inside each other, a choice: what is known
of a parameter gets less with each."""
_MOST = 6000
"""Expressions that are interpreted, a choice: those of some hundred lines, a moment of the loop."""
_NONE = ast.Constant(None)


class _Enough(Exception):
    """The function is too long to be interpreted further."""


@dataclass(eq=False, slots=True)
class BodyInterpreter:
    """Interprets one function; `functions` are those of its module, `aliases` its imports."""

    functions: Mapping[str, ast.FunctionDef]
    aliases: Mapping[str, str]
    variables: Mapping[str, ast.expr] = field(default_factory=dict)
    """What the module's variables are assigned: `predict = jax.vmap(one)`."""
    methods: Mapping[str, ast.FunctionDef] = field(default_factory=dict)
    """The methods of the function's class."""
    attributes: Mapping[str, ast.expr] = field(default_factory=dict)
    """What the class assigns to the attributes of `self`: its layers."""
    links: list[tuple[Shape, Shape]] = field(default_factory=list)
    """Pairs of shapes that are broadcast with each other."""
    depth: int = 0
    steps: int = 0
    active: list[ast.AST] = field(default_factory=list)

    def run(self, node: ast.FunctionDef, parameters: Mapping[str, Value]) -> None:
        """Interpret a function whose parameters have these values."""
        self.steps = 0
        try:
            self._block(node.body, dict(parameters))
        except (_Enough, RecursionError):
            return

    # Statements

    def _block(self, body: Sequence[ast.stmt], scope: dict[str, Value]) -> Value | None:
        """Interpret statements; return the value of the first `return`."""
        returned: Value | None = None
        for statement in body:
            value = self._statement(statement, scope)
            returned = value if returned is None else returned
        return returned

    def _statement(self, statement: ast.stmt, scope: dict[str, Value]) -> Value | None:
        match statement:
            case ast.Return(value=value):
                return self.value(value, scope) if value is not None else Const(None)
            case ast.Assign(targets=targets, value=value):
                result = self.value(value, scope)
                for target in targets:
                    self.assign(target, result, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.value(value, scope), scope)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                left = scope.get(name, UNKNOWN)
                scope[name] = self.binary(left, op, self.value(value, scope))
            case ast.FunctionDef(name=name):
                scope[name] = Closure(statement, scope)
            case ast.If():
                return self._if(statement, scope)
            case ast.Assert(test=test):
                self._holds(test, scope)
            case ast.For(target=target, iter=iterable, body=body):
                self._for(target, iterable, scope)
                return self._block(body, scope)
            case ast.While(test=test, body=body):
                self.value(test, scope)
                return self._block(body, scope)
            case ast.With(body=body):
                return self._block(body, scope)
            case ast.Try(body=body):
                return self._block(body, scope)
            case ast.Match(subject=subject, cases=cases):
                facts = facts_of(self.value(subject, scope))
                returned = None
                for case in cases:
                    match case.pattern:
                        case ast.MatchValue(value=ast.Constant(value=str(choice))):
                            facts.choices.append(repr(choice))
                    value_of_case = self._block(case.body, scope)
                    returned = value_of_case if returned is None else returned
                return returned
            case ast.Expr(value=value):
                self.value(value, scope)
        return None

    def _if(self, statement: ast.If, scope: dict[str, Value]) -> Value | None:
        test, body, orelse = statement.test, statement.body, statement.orelse
        if any(isinstance(statement, ast.Raise) for statement in body):
            self._holds(test, scope, holds=False)
            return self._block(orelse, scope)
        match test:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]) if (
                isinstance(value := scope.get(name), Param) and value.evidence.optional
            ):
                # The parameter is `None` in this branch, and keeps its value after that.
                inner = dict(scope)
                first = self._block(body, inner)
                scope |= {**inner, name: scope[name]}
            case _:
                skipped = self._of_other_class(test, scope)
                self._test(test, scope)
                first = None if skipped else self._block(body, scope)
        second = self._block(orelse, scope)
        return first if first is not None else second

    def _of_other_class(self, test: ast.expr, scope: dict[str, Value]) -> bool:
        """Return whether a branch is for parameters that are no arrays."""
        match test:
            case ast.Call(func=ast.Name(id="isinstance"), args=[ast.Name(id=name), classes]):
                value = scope.get(name)
                return isinstance(value, Param) and "rray" not in ast.unparse(classes)
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()]):
                return isinstance(scope.get(name), Param)
            case ast.BoolOp(op=ast.And(), values=values):
                return any(self._of_other_class(value, scope) for value in values)
        return False

    def _test(self, test: ast.expr, scope: dict[str, Value]) -> None:
        """Interpret the condition of a branch: ranks that it asks for are likely."""
        match test:
            case ast.Name(id=name) if isinstance(value := scope.get(name), Param):
                value.evidence.tested = True
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._test(operand, scope)
            case ast.BoolOp(values=values):
                for inner in values:
                    self._test(inner, scope)
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                one, two = self.value(left, scope), self.value(right, scope)
                match one, two:
                    case RankOf(shape), Const(int() as rank):
                        shape.suggest(rank)
                    case Param(evidence), Const(constant):
                        conditions.choose(evidence, constant)
            case _:
                self.value(test, scope)

    def _holds(self, test: ast.expr, scope: dict[str, Value], *, holds: bool = True) -> None:
        """Learn from a condition that must be true, or false."""
        conditions.learn(self, lambda node: self.value(node, scope), test, holds=holds)

    def _for(self, target: ast.expr, iterable: ast.expr, scope: dict[str, Value]) -> None:
        self.assign(target, uses.item_of(self, self.value(iterable, scope)), scope)

    def assign(self, target: ast.expr, value: Value, scope: dict[str, Value]) -> None:
        """Bind a target."""
        match target:
            case ast.Name(id=name):
                scope[name] = value
                if isinstance(value, Size) and not value.dim.find().name:
                    value.dim.find().name = name
            case ast.Tuple(elts=targets) | ast.List(elts=targets) if (
                isinstance(value, Param)
                and all(isinstance(target, ast.Name) for target in targets)
                and not value.evidence.array
            ):
                parts = value.evidence.parts
                if len(parts) != len(targets):
                    named = [ast.unparse(target) for target in targets]
                    parts = value.evidence.parts = tuple(map(Evidence, named))
                for inner, part in zip(targets, parts, strict=True):
                    self.assign(inner, Param(part), scope)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                starred = any(isinstance(target, ast.Starred) for target in targets)
                values = uses.unpacked(value, len(targets), starred=starred)
                for inner, item in zip(targets, values, strict=True):
                    self.assign(inner, item, scope)
            case ast.Starred(value=inner):
                self.assign(inner, UNKNOWN, scope)
            case ast.Subscript():
                self.value(target, scope)

    # Expressions

    def value(self, node: ast.expr, scope: dict[str, Value]) -> Value:
        """Return the value of an expression."""
        self.steps += 1
        if self.steps > _MOST:
            raise _Enough
        match node:
            case ast.Constant(value=constant):
                return Const(constant)
            case ast.Name(id=name):
                return self._name(name, scope)
            case ast.Attribute(value=inner, attr=attr):
                return self._attribute(self.value(inner, scope), attr)
            case ast.Subscript(value=inner, slice=index):
                parts = index.elts if isinstance(index, ast.Tuple) else [index]
                whole = self.value(inner, scope)
                return uses.indexed(whole, [self._part(part, scope) for part in parts])
            case ast.Call():
                return self._call(node, scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(self.value(left, scope), op, self.value(right, scope))
            case ast.UnaryOp(op=op, operand=operand):
                return self._unary(op, self.value(operand, scope))
            case ast.Compare():
                return self._comparison(node, scope)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return self._display(elements, scope)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._test(test, scope)
                first, second = self.value(body, scope), self.value(orelse, scope)
                return second if isinstance(first, Const | Unknown) else first
            case ast.Lambda():
                return Closure(node, scope)
            case ast.GeneratorExp() | ast.ListComp() | ast.DictComp() | ast.SetComp():
                inside = dict(scope)
                for generator in node.generators:
                    self._for(generator.target, generator.iter, inside)
                    for condition in generator.ifs:
                        self.value(condition, inside)
                self.value(node.value if isinstance(node, ast.DictComp) else node.elt, inside)
            case ast.NamedExpr(target=target, value=inner):
                value = self.value(inner, scope)
                self.assign(target, value, scope)
                return value
            case ast.BoolOp(values=values):
                operands = [self.value(value, scope) for value in values]
                match operands:
                    case [Param(evidence), Items() | ShapeOf()]:
                        evidence.shape_like = True
                return operands[-1]
            case ast.Dict(values=values):
                for item in values:
                    self.value(item, scope)
        return UNKNOWN

    def _attribute(self, value: Value, name: str) -> Value:
        """Return an attribute; a method of the function's own class is interpreted where called."""
        match value:
            case Param(evidence) if evidence.instance:
                if name in self.methods:
                    return Closure(self.methods[name], {}, (value,))
                if isinstance(layer := self.value(self.attributes.get(name, _NONE), {}), Layer):
                    return layer
                return Param(evidence.members.setdefault(name, Evidence(name)))
        return uses.attribute(value, name)

    def _name(self, name: str, scope: dict[str, Value]) -> Value:
        if name in scope:
            return scope[name]
        if name in self.functions:
            return Closure(self.functions[name], {})
        assigned = self.variables.get(name)
        if isinstance(assigned, ast.Constant):
            return Const(assigned.value)
        if isinstance(assigned, ast.Call) and self.depth < _DEEPEST:
            self.depth += 1
            try:
                made = self.value(assigned, {})
            finally:
                self.depth -= 1
            if isinstance(made, Closure | Layer):
                return made
        return Dotted(self.aliases.get(name, name))

    def _part(self, part: ast.expr, scope: dict[str, Value]) -> Value | slice:
        """Return a part of a subscript; a slice has constant bounds or none."""
        if not isinstance(part, ast.Slice):
            return self.value(part, scope)
        bounds: list[int | None] = []
        for bound in (part.lower, part.upper):
            value = self.value(bound, scope) if bound is not None else Const(None)
            uses.as_integer(value)
            constant = value.value if isinstance(value, Const) else None
            bounds.append(constant if isinstance(constant, int) else None)
        limits = sum(bound is not None for bound in (part.lower, part.upper))
        known = part.step is None and limits == sum(bound is not None for bound in bounds)
        return slice(bounds[0], bounds[1], None if known else 1)

    def _display(self, elements: list[ast.expr], scope: dict[str, Value]) -> Value:
        values: list[Value] = []
        known = True
        for element in elements:
            if isinstance(element, ast.Starred):
                inner = self.value(element.value, scope)
                dims = uses.sizes_of(inner) if isinstance(inner, ShapeOf) else None
                if isinstance(inner, Items):
                    values += inner.values
                elif dims is not None:
                    values += map(Size, dims)
                else:
                    known = False
            else:
                values.append(self.value(element, scope))
        return Items(tuple(values)) if known else UNKNOWN

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

    def binary(self, left: Value, op: ast.operator, right: Value) -> Value:
        """Return the value of an operation on two operands."""
        match left, op, right:
            case _, ast.MatMult(), _:
                return linear.matmul(self, left, right)
            case ((ShapeOf() | Items()), ast.Add(), (ShapeOf() | Items() | Param())) | (
                Param(),
                ast.Add(),
                (ShapeOf() | Items()),
            ):
                return uses.joined(left, right)
        if isinstance(left, RankOf) and not isinstance(op, ast.Add | ast.Sub):
            return UNKNOWN
        return uses.arithmetic(self, left, right, is_sum=isinstance(op, ast.Add))

    def _comparison(self, node: ast.Compare, scope: dict[str, Value]) -> Value:
        value = self.value(node.left, scope)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            other = self.value(comparator, scope)
            if isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn):
                conditions.among(value, other)
                return UNKNOWN
            if isinstance(other, Const) and isinstance(other.value, str):
                if isinstance(value, Param):
                    conditions.choose(value.evidence, other.value)
                return UNKNOWN
            value = uses.arithmetic(self, value, other)
        return value

    # Calls

    def _call(self, node: ast.Call, scope: dict[str, Value]) -> Value:
        function = self.value(node.func, scope)
        arguments: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                inner = self.value(argument.value, scope)
                arguments += inner.values if isinstance(inner, Items) else [inner]
            else:
                arguments.append(self.value(argument, scope))
        keywords = {
            keyword.arg: self.value(keyword.value, scope)
            for keyword in node.keywords
            if keyword.arg is not None
        }
        return self.apply(function, arguments, keywords)

    def apply(
        self,
        function: Value,
        arguments: Sequence[Value],
        keywords: Mapping[str, Value] | None = None,
    ) -> Value:
        """Return the value of a call."""
        keywords = keywords or {}
        match function:
            case Param(evidence):
                evidence.called = True
            case Closure():
                return self._inline(function, arguments, keywords)
            case Layer():
                return layers.applied(function, arguments)
            case Dotted():
                call = uses.LibraryCall(self, arguments, keywords)
                return layers.layer(function, call) or operations.result_of(function, call)
        return UNKNOWN

    def _inline(
        self, function: Closure, arguments: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Value:
        if function.mapped:
            return control.mapped_call(self, function, arguments)
        node = function.node
        if len(self.active) >= _DEEPEST or node in self.active:
            return UNKNOWN
        scope = dict(function.scope)
        parameters = [p.arg for p in (*node.args.posonlyargs, *node.args.args)]
        scope |= dict.fromkeys((*parameters, *(p.arg for p in node.args.kwonlyargs)), UNKNOWN)
        for name, default in zip(reversed(parameters), reversed(node.args.defaults), strict=False):
            if isinstance(default, ast.Constant):
                scope[name] = Const(default.value)
        passed = [*function.bound, *arguments]
        scope |= {**dict(zip(parameters, passed, strict=False)), **keywords}
        if node.args.vararg is not None:
            scope[node.args.vararg.arg] = Items(tuple(passed[len(parameters) :]))
        self.active.append(node)
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, scope)
            result = self._block(node.body, scope)
            return result if result is not None else UNKNOWN
        finally:
            self.active.pop()
