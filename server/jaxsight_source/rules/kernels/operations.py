"""What only kernels contain: positions in the grid, masked reads, scratch memory, copies."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from jaxsight_source.compat import pallas, parameters
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import is_dropped, opened
from jaxsight_source.equations.registry import STRUCTURES, flags, passed
from jaxsight_source.errors import Unsourceable
from jaxsight_source.proof.prover import Proved
from jaxsight_source.rules.kernels.pallas_call import PALLAS, TPU, TRITON, scratch
from jaxsight_source.rules.lax.refs import require, spelled, view
from jaxsight_source.text.exprs import TRUE, call, dict_, tuple_
from jaxsight_source.values.public_names import at_hand
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.scope import Scope
from jaxsight_source.writing.variables import argument_bases, nested_results, sequence


@STRUCTURES("program_id", "num_programs")
def position(scope: Scope, equation: Equation) -> Proved:
    path = at_hand(PALLAS, equation.primitive.name)
    return Proved(call(path, value(equation.params["axis"])), 0)


@STRUCTURES("multiple_of")
def multiple_of(scope: Scope, equation: Equation) -> Proved:
    values = equation.params["values"]
    hint = values[0] if len(values) == 1 else values
    operand = scope.operand(equation.invars[0])
    return Proved(call(at_hand(PALLAS, "multiple_of"), operand, value(hint)), 0)


@STRUCTURES("masked_load")
def masked_load(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    ref, views, mask, other = _unflattened(scope, equation)
    options = present(other=other) | passed(params, "cache_modifier", "eviction_policy")
    if params.get("is_volatile"):
        options["volatile"] = TRUE
    path = at_hand(TRITON if options else _module_of(equation), "load")
    return Proved(call(path, view(ref, views), **present(mask=mask), **options), 0)


@STRUCTURES("masked_swap")
def masked_swap(scope: Scope, equation: Equation) -> Proved:
    if not is_dropped(equation.outvars[0]) and scope.uses.get(id(equation.outvars[0])):
        raise Unsourceable("masked_swap", "the old value is used")
    ref, views, stored, mask = _unflattened(scope, equation)
    options = passed(equation.params, "eviction_policy")
    path = at_hand(TRITON if options else _module_of(equation), "store")
    return Proved(call(path, view(ref, views), stored, **present(mask=mask), **options), ())


def _unflattened(
    scope: Scope, equation: Equation
) -> tuple[ast.expr, list[parameters.RefView], Any, Any]:
    leaves = spelled(scope, equation.invars)
    tree = equation.params["args_tree"]
    ref, transforms, first, second = parameters.unflattened(tree, leaves)
    return ref, require(equation, parameters.views(transforms)), first, second


def present(**options: Any) -> dict[str, ast.expr]:
    """Return the options that are given."""
    return {name: option for name, option in options.items() if option is not None}


def _module_of(equation: Equation) -> str:
    """Return the module with `load` and `store`: that for TPUs if the reference is in its memory.

    Both make the same equation.
    """
    space = pallas.memory_space(equation.invars[0].aval)
    return TPU if ".mosaic." in type(space).__module__ else TRITON


@STRUCTURES("atomic_rmw")
def atomic(scope: Scope, equation: Equation) -> Proved:
    ref, views, changed, mask = _unflattened(scope, equation)
    name = f"atomic_{equation.params['atomic_type'].value}"
    # `atomic_add(ref, indices, value)`: the view has the indices.
    arguments = (view(ref, views), tuple_(()), changed)
    return Proved(call(at_hand(TRITON, name), *arguments, **present(mask=mask)), 0)


@STRUCTURES("run_scoped")
def run_scoped(scope: Scope, equation: Equation) -> Proved:
    params = equation.params
    if any(params.get("ref_transforms") or ()):
        raise Unsourceable("run_scoped", "its memory has a layout of its own")
    program = opened(params["jaxpr"])
    inner = scope.inner()
    for var, atom in zip(program.jaxpr.constvars, equation.invars, strict=True):
        inner.alias(var, atom)
    names = inner.parameters(program.jaxpr.invars, argument_bases(program, "ref"))
    inner.equations(program.jaxpr.eqns, program.jaxpr.outvars)
    outputs = [inner.operand(atom) for atom in program.jaxpr.outvars]
    function = scope.defined("scoped", tuple(names), inner, sequence(outputs) if outputs else None)
    types = [scratch(var.aval) for var in program.jaxpr.invars]
    options = {}
    if params.get("collective_axes"):
        options["collective_axes"] = value(params["collective_axes"])
    path = at_hand(PALLAS, "run_scoped")
    return Proved(call(path, function, *types, **options), nested_results(len(outputs)))


@STRUCTURES("dma_start", "dma_wait")
def copy(scope: Scope, equation: Equation) -> Proved:
    """Write a copy between memories, or the wait for one."""
    params = equation.params
    parts = parameters.unflattened(params["tree"], spelled(scope, equation.invars))
    source, target, semaphore, sent, device = _copied(equation, parts)
    method, options = "start", dict[str, ast.expr]()
    if equation.primitive.name == "dma_wait":
        method = "wait"
        if params.get("is_wait_send"):
            method, source, target, semaphore, sent = "wait_send", target, source, sent, semaphore
        elif sent is not None:
            method = "wait_recv"
    else:
        if params.get("priority"):
            options["priority"] = value(params["priority"])
        options |= flags(params, "add")
    if device is None:
        if sent is not None:
            raise Unsourceable(equation.primitive.name, "a local copy has two semaphores")
        made = call(at_hand(TPU, "make_async_copy"), source, target, semaphore)
    else:
        made = call(at_hand(TPU, "make_async_remote_copy"), source, target, sent, semaphore, device)
    return Proved(call(ast.Attribute(made, method), **options), ())


def _copied(equation: Equation, parts: Sequence[Any]) -> list[Any]:
    """Return source, target, their semaphores and the device, as expressions or None."""
    if len(parts) == 5:  # references with their transformations
        pairs, device = [parameters.parted(part) for part in parts[:4]], parts[4]
    else:  # before JAX 0.10, each followed by its transformations
        pairs, device = [(parts[i], parts[i + 1] or ()) for i in range(0, 8, 2)], parts[8]
    viewed: list[Any] = [
        None if ref is None else view(ref, require(equation, parameters.views(transforms or ())))
        for ref, transforms in pairs
    ]
    return [*viewed, _device(device)]


def _device(device: Any) -> ast.expr | None:
    match device:
        case None:
            return None
        case dict():
            return dict_((value(axis), part) for axis, part in device.items())
        case tuple() | list():
            return tuple_(device)
        case _:
            return device  # type: ignore[no-any-return]


@STRUCTURES("semaphore_signal", "semaphore_wait", "semaphore_read")
def semaphore(scope: Scope, equation: Equation) -> Proved:
    name = equation.primitive.name
    parts = parameters.unflattened(equation.params["args_tree"], spelled(scope, equation.invars))
    ref = view(parts[0], require(equation, parameters.views(parts[1] or ())))
    arguments: list[ast.expr] = [ref]
    options: dict[str, ast.expr] = {}
    if name != "semaphore_read":
        arguments.append(parts[2])
    if name == "semaphore_signal":
        options = present(device_id=_device(parts[3]), core_index=parts[4])
    made = call(at_hand(PALLAS, name), *arguments, **options)
    return Proved(made, 0 if name == "semaphore_read" else ())


_PLAIN = {"delay": PALLAS, "get_barrier_semaphore": TPU, "prng_seed": TPU}
"""Modules of public functions that take the operands."""


@STRUCTURES(*_PLAIN)
def plain(scope: Scope, equation: Equation) -> Proved:
    name = equation.primitive.name
    made = call(at_hand(_PLAIN[name], name), *spelled(scope, equation.invars))
    return Proved(made, 0 if equation.outvars else ())
