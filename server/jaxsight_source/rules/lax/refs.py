"""References: mutable arrays, and the blocks of kernels."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from jaxsight_source.compat import parameters
from jaxsight_source.compat.jaxpr_types import Atom, Equation
from jaxsight_source.compat.staging import is_dropped, is_literal, opened
from jaxsight_source.equations.registry import STRUCTURES, passed
from jaxsight_source.errors import Unsourceable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import COLON, ELLIPSIS, NONE, call, span, subscript, tuple_
from jaxsight_source.text.statements import assign, define
from jaxsight_source.values.public_names import at_hand
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.scope import WRITTEN, Scope
from jaxsight_source.writing.variables import argument_bases


@STRUCTURES("new_ref", "ref")
def new_ref(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    options = passed(params, "memory_space", "kind")
    if params.get("pin"):
        raise Unsourceable("new_ref", "it is pinned, for which there is no public option")
    return Proved(call("jax.new_ref", scope.operand(equation.invars[0]), **options), 0)


@STRUCTURES("freeze")
def freeze(scope: Scope, equation: Equation) -> Proved:
    return Proved(call("jax.freeze", scope.operand(equation.invars[0])), 0)


@STRUCTURES("get")
def get(scope: Scope, equation: Equation) -> Proved:
    ref, *leaves = spelled(scope, equation.invars)
    return Proved(element(ref, _views(equation, leaves)), 0)


@STRUCTURES("swap")
def swap(scope: Scope, equation: Equation) -> Proved:
    """Write `ref[…] = value`, or `jax.ref.swap` if the old value is used."""
    ref, _, *leaves = spelled(scope, equation.invars)
    stored = scope.operand(equation.invars[1])
    views = _views(equation, leaves)
    if not is_dropped(equation.outvars[0]) and scope.uses.get(id(equation.outvars[0])):
        return Proved(call("jax.ref.swap", *_place(ref, views), stored), 0)
    scope.body.append(assign(element(ref, views), stored, [equation]))
    return WRITTEN


@STRUCTURES("addupdate")
def addupdate(scope: Scope, equation: Equation) -> Proved:
    ref, _, *leaves = spelled(scope, equation.invars)
    added = scope.operand(equation.invars[1])
    return Proved(call("jax.ref.addupdate", *_place(ref, _views(equation, leaves)), added), ())


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
    scope.body.append(define(name, (parameter,), inner.body))
    runner = scope.names.fresh("run")
    path = at_hand("jax.experimental.pallas", "run_state")
    scope.body.append(assign(runner, call(path, ast.Name(name))))
    operands = scope.operands(equation.invars, equation.outvars)
    return Proved(call(runner, tuple_(operands)), tuple(range(len(operands))))


def spelled(scope: Scope, atoms: Sequence[Atom]) -> list[ast.expr]:
    """Return expressions for a reference and what selects a part of it; numbers are Python's."""
    return [
        ast.Constant(int(atom.val))
        if is_literal(atom) and not atom.aval.shape and atom.aval.dtype.kind in "iu"
        else scope.operand(atom)
        for atom in atoms
    ]


def _views(equation: Equation, leaves: Sequence[ast.expr]) -> list[parameters.RefView]:
    transforms = parameters.unflattened(equation.params["tree"], leaves)
    return require(equation, parameters.views(transforms))


def require(equation: Equation, views: list[parameters.RefView] | None) -> list[parameters.RefView]:
    if views is None:
        raise Unsourceable(equation.primitive.name, "a reference has an unknown transformation")
    return views


def view(ref: ast.expr, views: Sequence[parameters.RefView]) -> ast.expr:
    """Return a view of a reference: `ref.at[0].reshape((8, 128))`."""
    for each in views:
        if isinstance(each, parameters.Indexed):
            ref = subscript(ast.Attribute(ref, "at"), *_items(each))
        else:
            ref = call(ast.Attribute(ref, each.method), value(each.argument))
    return ref


def element(ref: ast.expr, views: Sequence[parameters.RefView]) -> ast.expr:
    """Return the elements of a view: `ref[0, :]`."""
    if views and isinstance(views[-1], parameters.Indexed):
        return subscript(view(ref, views[:-1]), *_items(views[-1]))
    return subscript(view(ref, views), ELLIPSIS)


def _place(ref: ast.expr, views: Sequence[parameters.RefView]) -> tuple[ast.expr, ast.expr]:
    """Return a reference and the indices, as the functions of `jax.ref` take them."""
    last = views[-1] if views else None
    if not isinstance(last, parameters.Indexed):
        return view(ref, views), ELLIPSIS
    parts = [_item(part, in_call=True) for part in last.indices]
    return view(ref, views[:-1]), parts[0] if len(parts) == 1 else tuple_(parts)


def _items(indexed: parameters.Indexed) -> tuple[ast.expr, ...]:
    """Return the items in the brackets."""
    return tuple(map(_item, indexed.indices)) or (ELLIPSIS,)


def _item(part: object, *, in_call: bool = False) -> ast.expr:
    """Return an index; a slice is `0:4` in brackets, and `slice(0, 4)` as an argument."""
    if not isinstance(part, parameters.AxisSlice):
        return part if isinstance(part, ast.expr) else value(part)
    if part.is_whole:
        return call("slice", NONE) if in_call else COLON
    start, size = (_number(bound) for bound in (part.start, part.size))
    stop = None
    if start is not None and size is not None:
        stop = start + (size - 1) * part.stride + 1
    if start is not None and stop is not None and stop <= part.length:  # Python cuts longer ones
        if in_call:
            step = [] if part.stride == 1 else [value(part.stride)]
            return call("slice", value(start), value(stop), *step)
        return span(start, stop, part.stride)
    path = at_hand("jax.experimental.pallas", "ds")
    bounds = [
        each if isinstance(each, ast.expr) else value(each) for each in (part.start, part.size)
    ]
    return call(path, *bounds, *([] if part.stride == 1 else [value(part.stride)]))


def _number(bound: object) -> int | None:
    if isinstance(bound, ast.Constant):
        bound = bound.value
    return int(bound) if isinstance(bound, int) and bound >= 0 else None
