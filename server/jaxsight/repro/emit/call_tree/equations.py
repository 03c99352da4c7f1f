"""The body of a user's function as equations, which the sourcerizer writes.

A call of JAX is an equation, too, of a primitive that exists only here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from jaxsight.interpreters.compat.jaxpr_types import Atom, Var
from jaxsight.interpreters.compat.staging import (
    abstract,
    folded,
    is_literal,
    new_literal,
    new_variable,
    opened,
)
from jaxsight.repro.capture.call_tree.records import (
    Bind,
    Call,
    Constant,
    FunctionRef,
    Item,
    Operand,
    Packed,
    Ref,
    Step,
    Tree,
    UserCall,
)
from jaxsight.repro.compat import primitive_binds
from jaxsight.sourcerizer.errors import Unwritable
from jaxsight.sourcerizer.folding.steps import Returned

CALL = "jaxsight_call"
"""The name of the primitive that stands for calls of JAX."""


@dataclass(eq=False, slots=True)
class CallEquation:
    """A call of JAX, or the step that raised an error, with the interface of an equation."""

    item: Item
    owner: Any
    """The writer, which the rule for these equations calls."""
    invars: list[Any]
    outvars: list[Any]
    effects: frozenset[object] = frozenset()
    ctx: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    source_info: Any = field(default_factory=lambda: SimpleNamespace(name_stack="", traceback=None))
    bases: tuple[str, ...] = ()

    @property
    def primitive(self) -> Any:
        return SimpleNamespace(name=CALL)


_FAILING = frozenset({"it raises an error"})


class Equations:
    """The variables and equations of a tree."""

    def __init__(self, tree: Tree, owner: Any) -> None:
        self.tree = tree
        self.constants: list[tuple[Var, object]] = []
        """Variables for the constants of inlined functions, with their values."""
        self._owner = owner
        self._variables: dict[int, Any] = {}
        self._literals: dict[int, Any] = {}
        """Literals by the identity of the variables that they replace."""

    def variable(self, number: int) -> Any:
        """Return the variable of a value."""
        if number not in self._variables:
            aval = self.tree.avals.get(number)
            if aval is None and number in self.tree.arrays:
                aval = abstract(self.tree.arrays[number])
            self._variables[number] = (
                Returned("function") if aval is None else new_variable(_at_level(aval))
            )
        return self._variables[number]

    def atom(self, operand: Operand) -> Any:
        """Return the variable or literal of an operand."""
        if isinstance(operand, Ref):
            variable = self.variable(operand.number)
            return self._literals.get(id(variable), variable)
        if isinstance(operand, Constant) and isinstance(
            operand.value, (bool, int, float, complex, np.generic, np.ndarray)
        ):
            return new_literal(operand.value, abstract(operand.value))
        raise Unwritable(operand, "it is no operand")

    def of_body(self, user: UserCall) -> list[Any]:
        """Return the equations of a function's body."""
        equations: list[Any] = []
        for item in user.body:
            if isinstance(item, Bind) and not item.failed:
                equations.extend(self._bound(item))
            elif not (isinstance(item, Bind) and item is not user.body[-1]):
                equations.append(self._called(item))
        return equations

    def _called(self, item: Item) -> CallEquation:
        reads = [self.variable(number) for number in self.read_by(item)]
        results: list[Any] = []
        if isinstance(item, Call) and item.result is not None:
            results = [self.variable(number) for number in numbers(item.result)]
        failed = isinstance(item, Step) or item.failed
        return CallEquation(item, self._owner, reads, results, _FAILING if failed else frozenset())

    def read_by(self, item: Item) -> Iterator[int]:
        """Yield the numbers of the values that a call reads, also in the functions passed to it."""
        match item:
            case Bind():
                operands: Sequence[Operand] = item.operands
            case Call():
                operands = list(item.operands())
            case Step():
                operands = list(item.arguments.operands())
        for operand in operands:
            if isinstance(operand, Ref):
                yield operand.number
            elif isinstance(operand, FunctionRef) and isinstance(item, Call):
                user = self._owner.body_of(operand.number, item)
                if user is not None:
                    yield from self.read_in(user)

    def read_in(self, user: UserCall) -> Iterator[int]:
        """Yield the numbers of the values that a function reads."""
        for item in user.body:
            yield from self.read_by(item)
        if user.result is not None:
            yield from numbers(user.result)

    def _bound(self, bind: Bind) -> list[Any]:
        name = bind.primitive.name
        if name.startswith(("custom_jvp_call", "custom_vjp_call")) and "call_jaxpr" not in (
            bind.params
        ):
            raise Unwritable(name, "its rules are not public functions")
        invars = [self.atom(operand) for operand in bind.operands]
        outvars = [self.variable(number) for number in bind.results]
        params, avals = bind.params, [atom.aval for atom in invars]
        effects = primitive_binds.effects_of(bind.primitive, avals, params)
        equation = primitive_binds.equation(
            bind.primitive, invars, outvars, params, effects, bind.context
        )
        literal = folded(equation, invars)
        if literal is not None:
            self._literals[id(outvars[0])] = literal
            return []
        if name in ("jit", "pjit") and _is_inlined(params.get("inline")):
            return self._inlined(equation)
        return [equation]

    def _inlined(self, equation: Any) -> list[Any]:
        """Return the equations of a function that JAX inlines while tracing."""
        program = opened(equation.params["jaxpr"])
        atoms: dict[int, Any] = {
            id(var): atom for var, atom in zip(program.jaxpr.invars, equation.invars, strict=True)
        }
        self.constants += zip(program.jaxpr.constvars, program.consts, strict=False)

        def replaced(atom: Any) -> Any:
            return atom if is_literal(atom) else atoms.get(id(atom), atom)

        equations = []
        for inner in program.jaxpr.eqns:
            invars = [replaced(atom) for atom in inner.invars]
            literal = folded(inner, invars)
            if literal is not None:
                atoms[id(inner.outvars[0])] = literal
                continue
            outvars = [new_variable(var.aval) for var in inner.outvars]
            atoms.update((id(var), new) for var, new in zip(inner.outvars, outvars, strict=True))
            nested = inner.replace(invars=invars, outvars=outvars)
            if inner.primitive.name in ("jit", "pjit") and _is_inlined(inner.params.get("inline")):
                equations.extend(self._inlined(nested))
            else:
                equations.append(nested)
        for var, atom in zip(equation.outvars, program.jaxpr.outvars, strict=True):
            self._literals[id(var)] = replaced(atom)
        return [self._resolved(inner) for inner in equations]

    def _resolved(self, equation: Any) -> Any:
        """Return an equation that reads the values of inlined functions."""
        invars: list[Atom] = [self._literals.get(id(atom), atom) for atom in equation.invars]
        return equation.replace(invars=invars)


def numbers(packed: Packed) -> Iterator[int]:
    """Yield the numbers of a pytree's values."""
    for leaf in packed.leaves:
        if isinstance(leaf, Ref):
            yield leaf.number


def _is_inlined(inline: object) -> bool:
    return inline is True or getattr(inline, "name", "") == "JAX_EARLY"


def _at_level(aval: Any) -> Any:
    """Return an abstract value as jaxprs have it."""
    return aval
