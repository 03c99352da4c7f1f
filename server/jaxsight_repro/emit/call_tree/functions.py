"""Writes the user's functions, and the calls of JAX that they are passed to."""

from __future__ import annotations

import ast
import contextlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeAlias

import jax

from jaxsight_repro.capturing.call_tree import public_functions, records
from jaxsight_repro.capturing.call_tree.apis import CUSTOM, PASS_ANYTHING, RULES
from jaxsight_repro.compat import primitive_binds
from jaxsight_repro.emit.call_tree import steps
from jaxsight_repro.emit.call_tree.equations import CALL, Equations
from jaxsight_repro.emit.call_tree.structures import StandIns, base_of, part, path_of
from jaxsight_source.compat.staging import surroundings
from jaxsight_source.equations.registry import STRUCTURES
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.folding.steps import FoldedStep
from jaxsight_source.proof.prover import Proved
from jaxsight_source.rules.functions.calls import policy_expr
from jaxsight_source.text.exprs import (
    NONE,
    Item,
    call,
    is_identifier,
    lambda_,
    list_,
    public,
    subscript,
    tuple_,
)
from jaxsight_source.text.layout import flat
from jaxsight_source.text.names import identifier
from jaxsight_source.text.statements import Raw, assign, define, effect, return_
from jaxsight_source.values.spelling import struct, value
from jaxsight_source.writing.scope import WRITTEN, Scope
from jaxsight_source.writing.writer import Writer

Key: TypeAlias = tuple[Any, ...]
"""What a function is written once for: its number, and the types of its arguments."""

_RESULTS = {
    "scan": "scanned", "while_loop": "looped", "fori_loop": "looped", "cond": "branch",
    "switch": "branch", "map": "mapped", "grad": "gradient", "value_and_grad": "value",
    "pullback": "cotangent",
}  # fmt: skip
"""Base names for the results of calls."""

_NEVER = 'raise NotImplementedError("JAX did not call this function")'


class Functions:
    """Writes the functions and calls of a tree."""

    def __init__(self, tree: records.TrackedTree, writer: Writer) -> None:
        self.tree = tree
        self.writer = writer
        derivatives = writer.options.derivatives != "primal"
        self.equations = Equations(tree, self, derivatives=derivatives)
        self.stand_ins = StandIns(writer.names)
        self.parameters: defaultdict[Scope, set[str]] = defaultdict(set)
        """The names of the parameters of functions."""
        self._leaks = ""
        """The name of the list of leaked tracers."""
        self._leaked_count = 0
        self._active: dict[int, str] = {}
        """The functions with custom rules whose rules are being written: these may call them."""
        self._defined: defaultdict[Scope, dict[Key, str]] = defaultdict(dict)
        """The names of the functions that a scope has."""

    def body_of(self, number: int, caller: records.JaxCall | None) -> records.UserCall | None:
        """Return the call of a function that is written: the failing one, or else the last.

        The calls that JAX made during `caller` are preferred.
        """
        during = [user for user in caller.users if user.function == number] if caller else []
        users = during or self.tree.functions[number].calls
        return next((user for user in users if user.failed), users[-1] if users else None)

    # Functions.

    def function(self, scope: Scope, number: int, caller: records.JaxCall | None) -> ast.expr:
        """Write a function, if it is not written yet; return an expression for it."""
        user = self.body_of(number, caller)
        function = self.tree.functions[number]
        if function.made_by is not None:
            composed = self._composed(scope, number, user)
            if composed is not None:
                return composed
        key: Key = (number,)
        if user is not None:
            key = (number, *self._kinds(user.arguments), user.failed, len(user.body))
        written = self._visible(scope, key)
        return ast.Name(written if written is not None else self._defined_as(scope, key, user))

    def _visible(self, scope: Scope, key: Key) -> str | None:
        """Return the name of a function that an enclosing scope has; note that it is read."""
        inside: list[Scope] = []
        around: Scope | None = scope
        while around is not None:
            if (name := self._defined[around].get(key)) is not None:
                if name not in self.writer.names.module:
                    for each in inside:
                        each.captured[name] = None
                return name
            inside.append(around)
            around = around.around
        return None

    def _defined_as(
        self,
        scope: Scope,
        key: Key,
        user: records.UserCall | None,
        decorators: Sequence[ast.expr] = (),
    ) -> str:
        """Write a function; return its name."""
        function = self.tree.functions[key[0]]
        name = scope.names.fresh(identifier(function.name, "function"))
        self._defined[scope][key] = name
        inner = scope.inner()
        if user is None:
            names = [parameter.rstrip("=") for parameter in function.parameters] or ["*args"]
            statement = define(name, tuple(names), [Raw([_NEVER])], list(decorators))
        else:
            parameters = self._parameters(inner, function.parameters, user)
            self.body(inner, user)
            statement = define(name, parameters, inner.body, list(decorators))
        body = scope.body
        if scope.around is None and not inner.captured and not decorators:
            self.writer.names.keep(name)
            body = self.writer.functions.statements
        body.append(statement)
        if name != function.name and function.name in self.tree.message:
            body.append(Raw([f"{name}.__name__ = {function.name!r}"]))
        return name

    def _kinds(self, arguments: records.Arguments) -> Key:
        """Return the types of arguments."""
        kinds = [
            str(self.tree.avals.get(operand)) if isinstance(operand, records.Ref) else repr(operand)
            for operand in arguments.operands()
        ]
        return (tuple(kinds), tuple(packed.node for packed in arguments.args))

    def _composed(
        self, scope: Scope, number: int, user: records.UserCall | None
    ) -> ast.expr | None:
        """Return `jax.vmap(f)` for a function that only calls what `jax.vmap` returned."""
        made_by = self.tree.functions[number].made_by
        assert made_by is not None
        inner: records.JaxCall | None = None
        if user is not None:
            if len(user.body) != 1 or not isinstance(user.body[0], records.JaxCall):
                return None
            inner = user.body[0]
            same = inner.inner == user.arguments and (
                inner.failed or (user.result is not None and inner.result == user.result)
            )
            if inner.api != made_by[0] or inner.method or not same:
                return None
        api, outer = made_by
        return call(path_of(api), *self.arguments(scope, outer, inner))

    def _parameters(
        self, scope: Scope, names: tuple[str, ...], user: records.UserCall
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
                node = records.Structure("tuple", tuple(packed.node for packed in rest))
                leaves = tuple(leaf for packed in rest for leaf in packed.leaves)
                self._take(scope, ast.Name(name), records.Pytree(node, leaves), used, name)
                break
            base = positional[index] if index < len(positional) else f"x_{index}"
            name = self._parameter(scope, base, used)
            parameters.append(name)
            self._take(scope, ast.Name(name), packed, used, name)
        for name, packed in user.arguments.kwargs.items():
            scope.names.keep(name)
            parameters.append(name)
            self._take(scope, ast.Name(name), packed, used, name)
        absent = [name.rstrip("=") for name in names[len(user.arguments.args) :]]
        if any(parameter.startswith("*") for parameter in parameters):
            return tuple(parameters)
        for name in absent:  # options of `jax.jit` may name them
            if not name.startswith("*") and name not in user.arguments.kwargs:
                scope.names.keep(name)
                parameters.append(f"{name}=None")
        return tuple(parameters)

    def _parameter(self, scope: Scope, base: str, used: set[int]) -> str:
        """Return a name for a parameter: the user's, which JAX's messages contain.

        It may hide a parameter of an enclosing function that this one does not read.
        """
        around = scope.around
        while around is not None and not around.names.owns(base):
            around = around.around
        captured: set[str] = set()
        hides = around is not None and base in self.parameters[around]
        if around is not None and hides:
            for number in used:
                with contextlib.suppress(KeyError):
                    expr = around.read(self.equations.variable(number))
                    captured.add(flat(expr))
        if not hides or base in captured:
            base = scope.names.fresh(base)
        else:
            scope.names.keep(base)
        self.parameters[scope].add(base)
        return base

    def _take(
        self, scope: Scope, expr: ast.expr, packed: records.Pytree, used: set[int], base: str
    ) -> None:
        """Write the assignments of the parts of a value that are used."""
        node = packed.node
        if node.kind != "leaf":
            for index, child in enumerate(packed.children):
                inner = part(expr, node, index)
                self._take(scope, inner, child, used, base_of(node, index, base))
            return
        (leaf,) = packed.leaves
        if isinstance(leaf, records.Ref):
            if not isinstance(expr, ast.Name):
                if leaf not in used:
                    return
                name = scope.names.fresh(base)
                scope.body.append(assign(name, expr))
                expr = ast.Name(name)
            scope.write(self.equations.variable(leaf), expr)

    def body(self, scope: Scope, user: records.UserCall) -> None:
        """Write the body of a function."""
        prover = self.writer.proofs.prover
        around, prover.axes = prover.axes, list(user.axes)
        mesh = getattr(user.context, "cur_abstract_mesh", None)
        settings = None if mesh is None or mesh.empty else user.context  # they are the usual ones
        try:
            with (
                primitive_binds.with_variance(user.checks_variance),
                surroundings(settings, user.axes),
            ):
                self._write_body(scope, user)
        finally:
            prover.axes = around

    def _write_body(self, scope: Scope, user: records.UserCall) -> None:
        equations = self.equations.of_body(user)
        outputs = [self.equations.atom(number) for number in user.results]
        self._write_constants(scope)
        self._leaked(scope, user)
        if user.failed and not (equations and equations[-1].effects):
            raise Unwritable(user.function, "the step that raised the error is not known")
        scope.equations(equations, outputs)
        if user.result is not None:
            scope.body.append(return_(self.packed(scope, user.result, None)))
        elif user.failed:
            steps.return_last(scope.body)
        elif not scope.body:
            scope.body.append(return_(NONE))

    def _write_constants(self, scope: Scope) -> None:
        for var, array in self.equations.constants:
            scope.write(var, self.writer.constants.constant(array))
        self.equations.constants.clear()

    def _leaked(self, scope: Scope, user: records.UserCall) -> None:
        """Write values that belong to traces that have ended as such: they raise an error."""
        defined = set(self.equations.defined_in(user))
        for number in self.equations.read_directly(user):
            variable = self.equations.variable(number)
            try:
                scope.read(variable)
            except KeyError:
                if number not in defined:
                    aval = self.tree.avals.get(number)
                    if aval is None or "unexpected tracer" not in self.tree.message:
                        raise Unwritable(number, "the value is of a call that has ended") from None
                    scope.write(variable, self._leak(aval))

    def _leak(self, aval: object) -> ast.expr:
        """Write statements that leak a tracer; return an expression for it."""
        top = self.writer.constants
        if not self._leaks:
            self._leaks = self.writer.names.fresh("leaked")
            top.statements.append(assign(self._leaks, list_(())))
        leak = lambda_(("value",), call(f"{self._leaks}.append", ast.Name("value")))
        top.statements.append(effect(call("jax.eval_shape", leak, struct(aval))))
        self._leaked_count += 1
        return subscript(ast.Name(self._leaks), ast.Constant(self._leaked_count - 1))

    # Calls.

    def write(self, scope: Scope, item: records.Item) -> None:
        """Write a call as a statement."""
        if isinstance(item, records.FailedStep):
            scope.body.append(steps.step(self, scope, item))
            return
        if isinstance(item, records.Bind):
            scope.body.append(effect(steps.bind(self, scope, item)))
            return
        assert isinstance(item, records.JaxCall)
        start = len(scope.body)
        try:
            expr = self.call(scope, item)
        except (KeyError, Unsourceable, Unwritable):
            if item.failed or not item.binds:
                raise
            del scope.body[start:]
            del self._defined[scope]
            self._write_binds(scope, item)
            return
        if item.result is None:
            scope.body.append(effect(expr))
            return
        self._assign(scope, item.result, expr, identifier(item.api.rpartition(".")[2]))

    def _write_binds(self, scope: Scope, item: records.JaxCall) -> None:
        """Write the primitives that a call bound, in its place."""
        assert item.bound is not None
        assert item.result is not None
        equations = self.equations.of_binds(item.binds)
        atoms = [
            self.equations.atom(leaf) if isinstance(leaf, records.Ref) else None
            for leaf in item.bound.leaves
        ]
        self._write_constants(scope)
        scope.equations(equations, [atom for atom in atoms if atom is not None])
        for leaf, atom in zip(item.result.leaves, atoms, strict=True):
            if isinstance(leaf, records.Ref) and atom is not None:
                with contextlib.suppress(KeyError):  # a value that nothing reads
                    scope.write(self.equations.variable(leaf), scope.operand(atom))

    def _assign(self, scope: Scope, result: records.Pytree, expr: ast.expr, api: str) -> None:
        used = {n for n in result.numbers if scope.uses.get(id(self.equations.variable(n)))}
        if not used:
            scope.body.append(effect(expr))
            return
        after: list[tuple[ast.Name, records.Pytree]] = []

        def target(packed: records.Pytree, base: str) -> ast.expr:
            if used.isdisjoint(packed.numbers):
                return ast.Name("_")
            node = packed.node
            if node.kind in ("tuple", "list"):
                children = enumerate(packed.children)
                return tuple_([target(each, base_of(node, i, base)) for i, each in children])
            name = ast.Name(scope.names.fresh(base))
            after.append((name, packed))
            return name

        targets = target(result, _RESULTS.get(api, "out"))
        scope.body.append(assign(targets, expr))
        for name, packed in after:
            self._take(scope, name, packed, used, name.id)

    def call(self, scope: Scope, item: records.JaxCall) -> ast.expr:
        """Return the expression of a call; write the functions in it."""
        if item.api == "pullback":
            function, *args = item.inner.args
            pullback = self.packed(scope, function, item)
            return call(pullback, *self.arguments(scope, records.Arguments(tuple(args)), item))
        inner = self.arguments(scope, item.traced, item)
        if item.api in CUSTOM:
            return call(self._custom(scope, item), *inner)
        if item.outer is None:
            return call(path_of(item.api), *inner)
        made: ast.expr = call(path_of(item.api), *self.arguments(scope, item.outer, item))
        if item.method:
            made = ast.Attribute(made, item.method)
        return call(made, *inner)

    def _custom(self, scope: Scope, item: records.JaxCall) -> ast.expr:
        """Write a function with custom derivative rules; return its name."""
        assert item.outer is not None
        fun, *rules = [packed.leaves[0] for packed in item.outer.args]
        if not isinstance(fun, records.FunctionRef):
            raise Unwritable(item.api, "it has no function")
        user = self.body_of(fun.number, item)
        key = (fun.number, item.api, *self._kinds(item.inner))
        written = self._visible(scope, key) or self._active.get(fun.number)
        if written is not None:
            return ast.Name(written)
        options = dict(item.outer.kwargs)
        if not options["nondiff_argnums"].leaves:
            del options["nondiff_argnums"]
        decorator: ast.expr = ast.Name(item.api)
        if options:
            named = self.arguments(scope, records.Arguments((), options), item)
            decorator = call(public("functools.partial", "functools"), decorator, *named)
        name = self._defined_as(scope, key, user, [decorator])
        self._active[fun.number] = name
        listed = [rule.number for rule in rules if isinstance(rule, records.FunctionRef)]
        defined = [self.function(scope, number, None) for number in listed]
        del self._active[fun.number]
        if defined:
            scope.body.append(effect(call(f"{name}.{RULES[item.api]}", *defined)))
        return ast.Name(name)

    def arguments(
        self, scope: Scope, arguments: records.Arguments, caller: records.JaxCall | None
    ) -> list[Item]:
        positional = [self.packed(scope, packed, caller) for packed in arguments.args]
        named = {
            name: self.packed(scope, packed, caller) for name, packed in arguments.kwargs.items()
        }
        if not all(map(is_identifier, named)):
            raise Unwritable(named, "its names are not Python identifiers")
        return [*positional, *(ast.keyword(name, part) for name, part in named.items())]

    def packed(
        self, scope: Scope, packed: records.Pytree, caller: records.JaxCall | None
    ) -> ast.expr:
        leaves = [self.leaf(scope, leaf, caller) for leaf in packed.leaves]
        return self.stand_ins.expr(packed.node, iter(leaves))

    def leaf(self, scope: Scope, leaf: records.Operand, caller: records.JaxCall | None) -> ast.expr:
        if isinstance(leaf, records.FunctionRef):
            return self.function(scope, leaf.number, caller)
        if isinstance(leaf, records.Ref):
            try:
                return scope.operand(self.equations.atom(leaf))
            except KeyError:
                raise Unwritable(leaf, "the value is of a call that has ended") from None
        constant = leaf.value
        if isinstance(constant, jax.ShapeDtypeStruct):
            return struct(constant)
        path = public_functions.path_of(constant) if callable(constant) else None
        if path is not None:
            return path_of(path)
        if callable(constant):
            with contextlib.suppress(Unwritable):
                return policy_expr(constant)
        try:
            return value(constant)
        except Unwritable:
            if caller is None or caller.api not in PASS_ANYTHING or isinstance(constant, type):
                raise
            return NONE  # an argument that is not traced, whose value the functions have


@STRUCTURES(CALL)
def _write_call(scope: Scope, equation: FoldedStep) -> Proved:
    functions, item = equation.family
    functions.write(scope, item)
    return WRITTEN
