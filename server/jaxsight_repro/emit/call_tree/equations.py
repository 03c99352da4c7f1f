"""The body of a user's function as equations, which the sourcerizer writes.

A call of JAX is an equation, too, of a primitive that exists only here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from jaxsight_repro.capturing.call_tree import records
from jaxsight_repro.compat import primitive_binds
from jaxsight_source.compat import staging
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Var
from jaxsight_source.errors import Unwritable
from jaxsight_source.folding.steps import FoldedStep, Returned
from jaxsight_source.readable import primal

CALL = "jaxsight_call"
"""The name of the primitive that stands for calls of JAX."""


_FAILING = frozenset({"it raises an error"})


class Equations:
    """The variables and equations of a tree."""

    def __init__(self, tree: records.TrackedTree, owner: Any, *, derivatives: bool) -> None:
        self.tree = tree
        self.constants: list[tuple[Var, object]] = []
        """Variables for the constants of inlined functions, with their values."""
        self._owner = owner
        self._derivatives = derivatives
        self._variables: dict[int, Var] = {}
        self._visited: set[int] = set()
        """The functions, by identity, whose reads are being listed: rules may call each other."""
        self._aliases: dict[int, Atom] = {}
        """What variables stand for, by identity: others, or literals."""

    def variable(self, number: int) -> Var:
        """Return the variable of a value."""
        if number not in self._variables:
            aval = self.tree.avals.get(number)
            if aval is None and number in self.tree.arrays:
                aval = staging.abstract(self.tree.arrays[number])
            function = cast(Var, Returned("function"))
            self._variables[number] = function if aval is None else staging.new_variable(aval)
        return self._variables[number]

    def atom(self, operand: records.Operand) -> Atom:
        """Return the variable or literal of an operand."""
        if isinstance(operand, records.Ref):
            variable = self.variable(operand)
            return self._aliases.get(id(variable), variable)
        if isinstance(operand, records.PlainValue) and isinstance(
            operand.value, (bool, int, float, complex, np.generic, np.ndarray)
        ):
            return staging.new_literal(operand.value, staging.abstract(operand.value))
        raise Unwritable(operand, "it is no operand")

    def of_body(self, user: records.UserCall) -> list[Equation]:
        """Return the equations of a function's body."""
        equations: list[Equation] = []
        for item in user.body:
            if isinstance(item, records.Bind) and not item.failed:
                equations.extend(self._bound(item))
            elif not (isinstance(item, records.Bind) and item is not user.body[-1]):
                equations.append(cast(Equation, self._called(item)))
        return equations

    def _called(self, item: records.Item) -> FoldedStep:
        reads = [self.atom(number) for number in self.read_by(item)]
        results: list[Var] = []
        if isinstance(item, records.JaxCall):
            for bind in item.binds:
                reads += [self.atom(part) for part in bind.inputs if isinstance(part, records.Ref)]
            if item.result is not None:
                results = [self.variable(number) for number in item.result.numbers]
        effects = _FAILING if item.failed else frozenset[object]()
        nowhere = SimpleNamespace(name_stack="", traceback=None)
        written = (self._owner, item)  # what the rule for these equations calls, and with what
        return FoldedStep(CALL, written, 0, reads, results, [], effects, nowhere)

    def read_by(self, item: records.Item) -> Iterator[int]:
        """Yield the numbers of the values that a call reads, also in the functions passed to it."""
        for operand in item.operands():
            if isinstance(operand, records.Ref):
                yield operand
            elif isinstance(operand, records.FunctionRef) and isinstance(item, records.JaxCall):
                user = self._owner.body_of(operand.number, item)
                if user is not None and id(user) not in self._visited:
                    self._visited.add(id(user))
                    yield from self.read_in(user)
                    self._visited.discard(id(user))

    def read_in(self, user: records.UserCall) -> Iterator[int]:
        """Yield the numbers of the values that a function reads."""
        for item in user.body:
            yield from self.read_by(item)
        yield from user.results

    def read_directly(self, user: records.UserCall) -> Iterator[int]:
        """Yield the numbers of the values that a function reads outside of inner functions."""
        for item in user.body:
            yield from (operand for operand in item.operands() if isinstance(operand, records.Ref))
        yield from user.results

    def defined_in(self, user: records.UserCall) -> Iterator[int]:
        """Yield the numbers of the values that a function gets or computes."""
        yield from (part for part in user.arguments.operands() if isinstance(part, records.Ref))
        for item in user.body:
            if isinstance(item, records.Bind):
                yield from item.results
            elif isinstance(item, records.JaxCall) and item.result is not None:
                yield from item.result.numbers

    def of_binds(self, binds: Sequence[records.Bind]) -> list[Equation]:
        """Return the equations of primitives."""
        return [equation for bind in binds for equation in self._bound(bind)]

    def _bound(self, bind: records.Bind) -> list[Equation]:
        name = bind.primitive.name
        if name.startswith(("custom_jvp_call", "custom_vjp_call")) and "call_jaxpr" not in (
            bind.params
        ):
            raise Unwritable(name, "its rules are not public functions")
        invars = [self.atom(operand) for operand in bind.inputs]
        try:
            with staging.surroundings(bind.context):
                return self._staged(bind, invars)
        except Exception:  # noqa: BLE001 - rules may depend on what surrounds the call
            outvars = [self.variable(number) for number in bind.results]
            avals = [atom.aval for atom in invars]
            effects = primitive_binds.effects_of(bind.primitive, avals, bind.params)
            return [
                primitive_binds.equation(
                    bind.primitive, invars, outvars, bind.params, effects, bind.context
                )
            ]

    def _staged(self, bind: records.Bind, invars: list[Atom]) -> list[Equation]:
        """Return the equations that JAX makes of a bind: it folds and inlines some."""
        variables = [atom for atom in invars if not staging.is_literal(atom)]

        def bound(*values: object) -> object:
            passed = iter(values)
            operands = [
                operand.value
                if staging.is_literal(atom) and isinstance(operand, records.PlainValue)
                else atom.val
                if staging.is_literal(atom)
                else next(passed)
                for operand, atom in zip(bind.inputs, invars, strict=True)
            ]
            return bind.primitive.bind(*operands, **params)

        params = bind.params
        if not self._derivatives:
            params = {name: _without_rules(value) for name, value in params.items()}
        program = staging.stage(bound, [atom.aval for atom in variables]).program
        atoms = dict(zip(map(id, program.jaxpr.invars), variables, strict=True))
        self.constants += zip(program.jaxpr.constvars, program.consts, strict=True)
        outputs = staging.substituted(program.jaxpr.outvars, atoms)
        for number, atom in zip(bind.results, outputs, strict=True):
            self._aliases[id(self.variable(number))] = atom
        return [
            inner.replace(invars=staging.substituted(inner.invars, atoms))
            for inner in program.jaxpr.eqns
        ]


def _without_rules(value: object) -> object:
    """Return a parameter with the calls of functions with derivative rules inlined."""
    if isinstance(value, tuple):
        return tuple(map(_without_rules, value))
    return primal(value) if staging.is_jaxpr(value) else value
