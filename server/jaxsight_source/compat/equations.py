"""Single equations: how to bind one, and the program that a call runs.

Applies to JAX 0.8 to 0.12.

Private API used: `Primitive.get_bind_params` (it returns functions and parameters up to 0.11,
parameters alone from 0.12), `JaxprEqn.ctx.manager`, `source_info_util.user_context`,
`Jaxpr.debug_info`, `sharding_impls.UnspecifiedValue`, `api_util.InternalFloatingPointError`, which
the primitive of `jax.jit` raises where `jax.jit` calls its function again without itself
(`pjit._python_pjit_helper`), and the parameters of calls.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import jax
from jax._src import api_util, sharding_impls, source_info_util

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program, opened

NanInCall: type[Exception] = api_util.InternalFloatingPointError
"""What a call raises, bound outside of `jax.jit`, for a result that `jax_debug_nans` forbids."""

_UNSPECIFIED: type = getattr(sharding_impls, "UnspecifiedValue")  # noqa: B009

_BODIES = {
    "call": "call_jaxpr", "checkpoint": "jaxpr", "closed_call": "call_jaxpr", "composite": "jaxpr",
    "core_call": "call_jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call", "eval_jaxpr": "jaxpr", "jit": "jaxpr", "pjit": "jaxpr",
    "remat2": "jaxpr", "xla_metadata_call": "jaxpr",
}  # fmt: skip
"""Primitives that run one program, once, on all of their inputs: the parameter that holds it."""

CALLS = frozenset(_BODIES)


def called(equation: Equation) -> Program | None:
    """Return the program that a call runs, or None for other primitives."""
    parameter = _BODIES.get(equation.primitive.name)
    if parameter == "jaxpr" and "call_jaxpr" in equation.params:
        parameter = "call_jaxpr"  # of an `eval_jaxpr` that discharging a `Ref` leaves in a loop
    if parameter is None or parameter not in equation.params:
        return None
    program = opened(equation.params[parameter])
    return program if len(program.jaxpr.invars) == len(equation.invars) else None


def function_name(program: Program) -> str:
    """Return the name of the function that a program was traced from; empty if unknown."""
    info = program.jaxpr.debug_info
    return str(info.func_name or "") if info is not None else ""


def argument_names(program: Program) -> tuple[str, ...]:
    """Return the names of a program's inputs in the function; empty ones if unknown."""
    info, count = program.jaxpr.debug_info, len(program.jaxpr.invars)
    names = (info.arg_names or ()) if info is not None else ()
    # JAX may have added inputs since.
    return tuple(name or "" for name in names) if len(names) == count else ("",) * count


def is_of_jax(program: Program) -> bool:
    """Return whether a program was traced from one of JAX's own functions."""
    info = program.jaxpr.debug_info
    return info is not None and f" at {_JAX}" in str(info.func_src_info)


_JAX = str(Path(jax.__file__).parent)


def is_unspecified(sharding: object) -> bool:
    """Return whether a sharding is one that `jit` was not given."""
    return isinstance(sharding, _UNSPECIFIED)


@contextlib.contextmanager
def attributed_to(equation: Equation) -> Iterator[None]:
    """Trace operations as if they were written at `equation`.

    They get its source location, its named scopes and its configuration.
    """
    info = equation.source_info
    stack = source_info_util.current_name_stack() + info.name_stack
    with source_info_util.user_context(info.traceback, name_stack=stack), equation.ctx.manager:
        yield


def bind(equation: Equation, values: Sequence[object]) -> list[jax.Array]:
    """Return the results of an equation for other values of its operands."""
    bind_params = equation.primitive.get_bind_params(equation.params)
    functions, params = bind_params if isinstance(bind_params, tuple) else ((), bind_params)
    results = equation.primitive.bind(*functions, *values, **params)
    return list(results) if equation.primitive.multiple_results else [results]


def call(equation: Equation, *values: object) -> jax.Array | tuple[jax.Array, ...]:
    """Return the result of an equation for other operands: one value, or a tuple of several."""
    results = bind(equation, values)
    return results[0] if len(results) == 1 else tuple(results)


def ruled(
    equation: Equation, function: Callable[..., object]
) -> Callable[..., jax.Array | tuple[jax.Array, ...]]:
    """Return a function with the derivative rules of the function that an equation calls.

    The values which that function captures are the first arguments; the new function captures them
    again.
    """
    count = equation.params["num_consts"]

    def differentiated(*values: object) -> jax.Array | tuple[jax.Array, ...]:
        applied = functools.partial(function, *values[:count])
        program = jax.make_jaxpr(applied)(*values[count:])
        params = equation.params | {"call_jaxpr": program, "num_consts": 0}
        if count and "out_trees" in params:
            params["out_trees"] = functools.partial(_without, count, params["out_trees"])
        return call(equation.replace(params=params), *values[count:])

    return differentiated


_OutTrees: TypeAlias = Callable[[], tuple[object, object, *tuple[Sequence[int | None], ...]]]


def _without(count: int, out_trees: _OutTrees) -> tuple[object, ...]:
    """Return the trees of a rule, with positions that do not count captured values.

    JAX adds `count` to these positions when it binds the call. They are the third item, if JAX
    forwards residuals that are inputs.
    """
    out_tree, residuals, *forwarded = out_trees()
    positions = [
        [None if position is None else position - count for position in sources]
        for sources in forwarded
    ]
    return (out_tree, residuals, *positions)
