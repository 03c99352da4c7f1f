"""Writes the user's functions, and the calls of JAX that they are passed to."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from jaxsight.repro.capture.call_tree import public_functions
from jaxsight.repro.capture.call_tree.apis import CUSTOM
from jaxsight.repro.capture.call_tree.records import (
    Arguments,
    Bind,
    Call,
    Constant,
    FunctionRef,
    Node,
    Operand,
    Packed,
    Ref,
    Step,
    Tree,
    UserCall,
)
from jaxsight.repro.emit.call_tree.equations import CALL, CallEquation, Equations, numbers
from jaxsight.repro.emit.call_tree.structures import StandIns, base_of, part
from jaxsight.sourcerizer.equations.registry import STRUCTURES
from jaxsight.sourcerizer.errors import Unwritable
from jaxsight.sourcerizer.proof.prover import Proved
from jaxsight.sourcerizer.text.exprs import (
    NONE,
    Atom,
    Attribute,
    Binary,
    Expr,
    Index,
    Item,
    Sequence_,
    call,
    is_identifier,
    keywords,
    tuple_,
)
from jaxsight.sourcerizer.text.imports import AT_HAND, SHORT
from jaxsight.sourcerizer.text.names import identifier
from jaxsight.sourcerizer.text.statements import Assign, Effect, Function, Raw, Return, Statement
from jaxsight.sourcerizer.values import public_names
from jaxsight.sourcerizer.values.spelling import value
from jaxsight.sourcerizer.writing.scope import WRITTEN, Scope
from jaxsight.sourcerizer.writing.writer import Writer

_NEVER = 'raise NotImplementedError("JAX did not call this function")'


class Functions:
    """Writes the functions and calls of a tree."""

    def __init__(self, tree: Tree, writer: Writer) -> None:
        self.tree = tree
        self.writer = writer
        self.equations = Equations(tree, self)
        self.stand_ins = StandIns(writer.names)
        self._defined: dict[tuple[Any, ...], tuple[Scope | None, str]] = {}

    def body_of(self, number: int, caller: Call | None) -> UserCall | None:
        """Return the call of a function that is written: the failing one, or else the last.

        The calls that JAX made during `caller` are preferred.
        """
        during = [user for user in caller.users if user.function == number] if caller else []
        users = during or self.tree.functions[number].calls
        return next((user for user in users if user.failed), users[-1] if users else None)

    # Functions.

    def function(self, scope: Scope, number: int, caller: Call | None) -> Expr:
        """Write a function, if it is not written yet; return an expression for it."""
        user = self.body_of(number, caller)
        function = self.tree.functions[number]
        if function.made_by is not None:
            composed = self._composed(scope, number, user)
            if composed is not None:
                return composed
        key = (number, self._signature(user))
        written = self._visible(scope, key)
        return Atom(written if written is not None else self._defined_as(scope, key, user))

    def _visible(self, scope: Scope, key: tuple[Any, ...]) -> str | None:
        """Return the name of a function that an enclosing scope has."""
        around: Scope | None = scope
        while around is not None:
            if (id(around), *key) in self._defined:
                return self._defined[id(around), *key][1]
            around = around.around
        return None

    def _defined_as(
        self,
        scope: Scope,
        key: tuple[Any, ...],
        user: UserCall | None,
        decorators: Sequence[Expr] = (),
    ) -> str:
        """Write a function; return its name."""
        function = self.tree.functions[key[0]]
        name = scope.names.fresh(identifier(function.name, "function"))
        self._defined[id(scope), *key] = scope, name
        if user is None:
            names = [parameter.rstrip("=") for parameter in function.parameters] or ["*args"]
            statement = Function(name, tuple(names), [Raw([_NEVER])], list(decorators))
        else:
            inner = scope.inner()
            parameters = self._parameters(inner, function.parameters, user)
            self.body(inner, user)
            statement = Function(name, parameters, inner.body, list(decorators))
        scope.body.append(statement)
        return name

    def _signature(self, user: UserCall | None) -> tuple[Any, ...]:
        if user is None:
            return ()
        kinds = [
            str(self.tree.avals.get(operand.number)) if isinstance(operand, Ref) else repr(operand)
            for operand in user.arguments.operands()
        ]
        nodes = [packed.node for packed in user.arguments.args]
        return (tuple(kinds), tuple(nodes), user.failed, len(user.body))

    def _composed(self, scope: Scope, number: int, user: UserCall | None) -> Expr | None:
        """Return `jax.vmap(f)` for a function that only calls what `jax.vmap` returned."""
        made_by = self.tree.functions[number].made_by
        assert made_by is not None
        inner: Call | None = None
        if user is not None:
            if len(user.body) != 1 or not isinstance(user.body[0], Call):
                return None
            inner = user.body[0]
            same = inner.inner == user.arguments and (
                inner.failed or (user.result is not None and inner.result == user.result)
            )
            if inner.api != made_by[0] or inner.method or not same:
                return None
        api, outer = made_by
        return call(_path(api), *self._arguments(scope, outer, inner))

    def _parameters(
        self, scope: Scope, names: tuple[str, ...], user: UserCall
    ) -> tuple[str, ...]:
        """Name the parameters of a function; write the assignments of their parts."""
        positional = [name for name in names if not name.endswith("=")]
        parameters: list[str] = []
        used = set(self.equations.read_in(user))
        for index, packed in enumerate(user.arguments.args):
            if index < len(positional) and positional[index].startswith("*"):
                rest = user.arguments.args[index:]
                name = scope.names.fresh(positional[index].lstrip("*"))
                parameters.append(f"*{name}")
                node = Node("tuple", tuple(packed.node for packed in rest))
                leaves = tuple(leaf for packed in rest for leaf in packed.leaves)
                self._take(scope, Atom(name), Packed(node, leaves), used, name)
                break
            base = positional[index] if index < len(positional) else f"x_{index}"
            name = scope.names.fresh(base)
            parameters.append(name)
            self._take(scope, Atom(name), packed, used, name)
        for name, packed in user.arguments.kwargs.items():
            scope.names.keep(name)
            parameters.append(name)
            self._take(scope, Atom(name), packed, used, name)
        return tuple(parameters)

    def _take(self, scope: Scope, expr: Expr, packed: Packed, used: set[int], base: str) -> None:
        """Write the assignments of the parts of a value that are used."""
        node, leaves = packed.node, packed.leaves
        if node.kind == "leaf":
            (leaf,) = leaves
            if isinstance(leaf, Ref):
                if not isinstance(expr, Atom):
                    if leaf.number not in used:
                        return
                    name = scope.names.fresh(base)
                    scope.body.append(Assign(name, expr))
                    expr = Atom(name)
                scope.write(self.equations.variable(leaf.number), expr)
            return
        start = 0
        for index, child in enumerate(node.children):
            inner = Packed(child, leaves[start : start + child.leaves])
            start += child.leaves
            self._take(scope, part(expr, node, index), inner, used, base_of(node, index, base))

    def body(self, scope: Scope, user: UserCall) -> None:
        """Write the body of a function."""
        equations = self.equations.of_body(user)
        outputs = [] if user.result is None else [
            self.equations.atom(leaf) for leaf in user.result.leaves if isinstance(leaf, Ref)
        ]
        for var, array in self.equations.constants:
            scope.write(var, self.writer.constants.constant(array))
        self.equations.constants.clear()
        if user.failed and not (equations and equations[-1].effects):
            raise Unwritable(user.function, "the step that raised the error is not known")
        scope.equations(equations, outputs)
        if user.result is not None:
            leaves = [self._leaf(scope, leaf, None) for leaf in user.result.leaves]
            scope.body.append(Return(self.stand_ins.expr(user.result.node, leaves)))
        elif not scope.body:
            scope.body.append(Return(NONE))

    # Calls.

    def write(self, scope: Scope, equation: CallEquation) -> None:
        """Write a call as a statement."""
        item = equation.item
        if isinstance(item, Step):
            scope.body.append(self._step(scope, item))
            return
        if isinstance(item, Bind):
            scope.body.append(Effect(self._bind(scope, item)))
            return
        assert isinstance(item, Call)
        expr = self.call(scope, item)
        if item.result is None:
            scope.body.append(Effect(expr))
            return
        self._assign(scope, item.result, expr, identifier(item.api.rpartition(".")[2]))

    def _assign(self, scope: Scope, result: Packed, expr: Expr, api: str) -> None:
        used = {number for number in numbers(result) if self._is_used(scope, number)}
        if not used:
            scope.body.append(Effect(expr))
            return
        base = _BASES.get(api, "out")
        after: list[tuple[Atom, Packed]] = []

        def target(packed: Packed, base: str) -> Expr:
            if used.isdisjoint(numbers(packed)):
                return Atom("_")
            node = packed.node
            if node.kind in ("tuple", "list"):
                parts, start = [], 0
                for index, child in enumerate(node.children):
                    inner = Packed(child, packed.leaves[start : start + child.leaves])
                    start += child.leaves
                    parts.append(target(inner, base_of(node, index, base)))
                return tuple_(parts)
            name = Atom(scope.names.fresh(base))
            after.append((name, packed))
            return name

        targets = target(result, base)
        assert isinstance(targets, (Atom, Sequence_))
        scope.body.append(Assign(targets.text if isinstance(targets, Atom) else targets, expr))
        for name, packed in after:
            self._take(scope, name, packed, used, name.text)

    def _is_used(self, scope: Scope, number: int) -> bool:
        return bool(scope.uses.get(id(self.equations.variable(number))))

    def call(self, scope: Scope, item: Call) -> Expr:
        """Return the expression of a call; write the functions in it."""
        if item.api == "pullback":
            function, *args = item.inner.args
            pullback = self._packed(scope, function, item)
            return call(pullback, *self._arguments(scope, Arguments(tuple(args)), item))
        inner = self._arguments(scope, item.inner, item)
        if item.api in CUSTOM:
            return call(self._custom(scope, item), *inner)
        if item.outer is None:
            return call(_path(item.api), *inner)
        made: Expr = call(_path(item.api), *self._arguments(scope, item.outer, item))
        if item.method:
            made = Attribute(made, item.method)
        return call(made, *inner)

    def _custom(self, scope: Scope, item: Call) -> Expr:
        """Write a function with custom derivative rules; return its name."""
        assert item.outer is not None
        fun, *rules = [packed.leaves[0] for packed in item.outer.args]
        if not isinstance(fun, FunctionRef):
            raise Unwritable(item.api, "it has no function")
        user = self.body_of(fun.number, item)
        key = (fun.number, item.api, self._signature(user))
        written = self._visible(scope, key)
        if written is not None:
            return Atom(written)
        options = dict(item.outer.kwargs)
        if not options["nondiff_argnums"].leaves:
            del options["nondiff_argnums"]
        decorator: Expr = Atom(item.api)
        if options:
            named = self._arguments(scope, Arguments((), options), item)
            decorator = call("functools.partial", decorator, *named)
        name = self._defined_as(scope, key, user, [decorator])
        defined = [
            self.function(scope, rule.number, None) for rule in rules if isinstance(rule, FunctionRef)
        ]
        if defined:
            method = "defjvp" if item.api == "jax.custom_jvp" else "defvjp"
            scope.body.append(Effect(call(Atom(name).dot(method), *defined)))
        return Atom(name)

    def _arguments(self, scope: Scope, arguments: Arguments, caller: Call | None) -> list[Item]:
        positional = [self._packed(scope, packed, caller) for packed in arguments.args]
        named = {
            name: self._packed(scope, packed, caller) for name, packed in arguments.kwargs.items()
        }
        if not all(map(is_identifier, named)):
            raise Unwritable(named, "its names are not Python identifiers")
        return [*positional, *keywords(named)]

    def _packed(self, scope: Scope, packed: Packed, caller: Call | None) -> Expr:
        leaves = [self._leaf(scope, leaf, caller) for leaf in packed.leaves]
        return self.stand_ins.expr(packed.node, leaves)

    def _leaf(self, scope: Scope, leaf: Operand, caller: Call | None) -> Expr:
        if isinstance(leaf, FunctionRef):
            return self.function(scope, leaf.number, caller)
        if isinstance(leaf, Ref):
            try:
                return scope.operand(self.equations.atom(leaf))
            except KeyError:
                raise Unwritable(leaf, "the value is of a call that has ended") from None
        constant = leaf.value
        path = public_functions.path_of(constant) if callable(constant) else None
        if path is not None:
            return _path(path)
        try:
            return value(constant)
        except Unwritable:
            if caller is not None and caller.api == "jax.jit" and not isinstance(constant, type):
                return NONE  # a static argument, whose value the functions have
            raise

    # The step that raised the error.

    def _step(self, scope: Scope, step: Step) -> Statement:
        items = self._arguments(scope, step.arguments, None)
        match step.kind, items:
            case "function", _:
                return Effect(call(_path(step.path), *items))
            case "method", [own, *rest]:
                return Effect(call(Attribute(_expr(own), step.path), *rest))
            case "operator", [left, right]:
                return Effect(Binary(step.path, _expr(left), _expr(right)))
            case "index", [own, key]:
                return Effect(Index(_expr(own), (_expr(key),)))
            case "attribute", _:
                own, name = step.arguments.args
                assert isinstance(name.leaves[0], Constant)
                return Effect(Attribute(self._packed(scope, own, None), str(name.leaves[0].value)))
            case _:
                path = step.path if hasattr(builtins, step.path) else "RuntimeError"
                return Effect(Atom(f"raise {path}({', '.join(map(_text, items))})"))

    def _bind(self, scope: Scope, bind: Bind) -> Expr:
        operands = [self._leaf(scope, operand, None) for operand in bind.operands]
        params = {name: value(part_) for name, part_ in bind.params.items()}
        return call(public_names.primitive(bind.primitive).dot("bind"), *operands, **params)


@STRUCTURES(CALL)
def _write_call(scope: Scope, equation: CallEquation) -> Proved:
    equation.owner.write(scope, equation)
    return WRITTEN


def _expr(item: Item) -> Expr:
    return item  # type: ignore[return-value]


def _text(item: Item) -> str:
    return item.text if isinstance(item, Atom) else "''"


def _path(path: str) -> Atom:
    """Return the public name of a function as modules write it."""
    module, _, name = path.rpartition(".")
    if not module:
        return Atom(name)
    if module in SHORT:
        return Atom(f"{SHORT[module]}.{name}")
    return Atom(path, "" if module in AT_HAND or module in ("jax", "np") else module)


_BASES = {
    "scan": "scanned",
    "while_loop": "looped",
    "fori_loop": "looped",
    "cond": "branch",
    "switch": "branch",
    "map": "mapped",
    "grad": "gradient",
    "value_and_grad": "value",
    "pullback": "cotangent",
}
"""Base names for the results of calls."""
