"""References: mutable arrays."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.interpreters.compat.jaxpr_types import Atom as JaxprAtom
from jaxsight.interpreters.compat.jaxpr_types import Equation
from jaxsight.interpreters.compat.staging import is_dropped, is_literal, opened
from jaxsight.sourcerizer.compat import refs
from jaxsight.sourcerizer.equations.fallback import given
from jaxsight.sourcerizer.equations.registry import STRUCTURES
from jaxsight.sourcerizer.errors import Unsourceable
from jaxsight.sourcerizer.proof.prover import Proved
from jaxsight.sourcerizer.text.exprs import NONE, Atom, Expr, Index, call, tuple_
from jaxsight.sourcerizer.text.statements import Assign, Function
from jaxsight.sourcerizer.values import public_names
from jaxsight.sourcerizer.values.spelling import value
from jaxsight.sourcerizer.writing.results import argument_bases
from jaxsight.sourcerizer.writing.scope import Scope


@STRUCTURES("new_ref", "ref")
def new_ref(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    options = given(params, "memory_space", "kind")
    if params.get("pin"):
        raise Unsourceable("new_ref", "it is pinned, for which there is no public option")
    return Proved(call("jax.new_ref", scope.operand(equation.invars[0]), **options), 0)


@STRUCTURES("freeze")
def freeze(scope: Scope, equation: Equation) -> Proved:
    return Proved(call("jax.freeze", scope.operand(equation.invars[0])), 0)


@STRUCTURES("get")
def get(scope: Scope, equation: Equation) -> Proved:
    ref, *leaves = equation.invars
    return Proved(Index(scope.read(ref), _items(scope, equation, leaves)), 0)


@STRUCTURES("swap")
def swap(scope: Scope, equation: Equation) -> Proved:
    """Write `jax.ref.set`, or `jax.ref.swap` if the old value is used."""
    ref, stored, *leaves = equation.invars
    indices = _items(scope, equation, leaves)
    arguments = [scope.read(ref), _one(indices), scope.operand(stored)]
    used = not is_dropped(equation.outvars[0]) and scope.uses.get(id(equation.outvars[0]))
    return Proved(call("jax.ref.swap" if used else "jax.ref.set", *arguments), 0)


@STRUCTURES("addupdate")
def addupdate(scope: Scope, equation: Equation) -> Proved:
    ref, added, *leaves = equation.invars
    indices = _items(scope, equation, leaves)
    return Proved(
        call("jax.ref.addupdate", scope.read(ref), _one(indices), scope.operand(added)), ()
    )


@STRUCTURES("run_state")
def run_state(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    if not all(params["is_initialized"]):
        raise Unsourceable("run_state", "a reference has no initial value")
    program = opened(params["jaxpr"])
    inner = scope.inner()
    names = inner.parameters(program.jaxpr.invars, argument_bases(program, "ref"))
    parameter = inner.names.fresh("refs")
    inner.take_apart(names, parameter)
    inner.program(program)
    name = scope.names.fresh("stateful")
    scope.body.append(Function(name, (parameter,), inner.body))
    path = public_names.imported("jax.experimental.pallas", "run_state")
    runner = scope.names.fresh("run")
    scope.body.append(Assign(runner, call(path, Atom(name))))
    operands = scope.operands(equation.invars, equation.outvars)
    return Proved(call(runner, tuple_(operands)), tuple(range(len(operands))))


def _one(indices: tuple[Expr, ...]) -> Expr:
    return indices[0] if len(indices) == 1 else tuple_(indices)


def _items(scope: Scope, equation: Equation, leaves: Sequence[JaxprAtom]) -> tuple[Expr, ...]:
    """Return the items in the brackets; `...` for the whole array."""
    spelled = [
        Atom(str(int(atom.val)))
        if is_literal(atom) and not atom.aval.shape
        else scope.operand(atom)
        for atom in leaves
    ]
    indices = refs.indices(equation.params["tree"], spelled)
    if indices is None:
        raise Unsourceable(
            equation.primitive.name, "a reference has a transformation other than one index"
        )
    if all(isinstance(part, refs.Range) and part.is_whole for part in indices):
        return (Atom("..."),)
    return tuple(_item(part) for part in indices)


def _item(part: object) -> Expr:
    if not isinstance(part, refs.Range):
        return part if isinstance(part, Expr) else value(part)
    if part.is_whole:
        return call("slice", NONE)
    if isinstance(part.start, int) and isinstance(part.size, int):
        stop = part.start + (part.size - 1) * part.stride + 1
        step = [] if part.stride == 1 else [value(part.stride)]
        return call("slice", value(part.start), value(stop), *step)
    if part.stride != 1:
        raise Unsourceable("get", "a slice has a traced start and a stride other than 1")
    path = public_names.imported("jax.experimental.pallas", "ds")
    return call(path, *(_item(bound) for bound in (part.start, part.size)))
