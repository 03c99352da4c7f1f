"""Traced and lowered functions. Applies to JAX 0.8 to 0.12.

Private API used: `Traced._consts`, `ArgInfo._aval` and `Lowered._lowering`. Since 0.9 a traced
function may list arrays that it captured as its first inputs, whose values are in `_consts`.
"""

from __future__ import annotations

import jax

from jaxsight_source.compat import avals
from jaxsight_source.compat.staging import Program, opened


def program(traced: jax.stages.Traced) -> Program:
    """Return the program of a traced function, with all that it captured among its constants."""
    inside = opened(traced.jaxpr)
    captured = tuple(getattr(traced, "_consts", ()))
    if not captured:
        return inside
    jaxpr, count = inside.jaxpr, len(captured)  # its first inputs become its last constants
    constants, inputs = [*jaxpr.constvars, *jaxpr.invars[:count]], list(jaxpr.invars[count:])
    moved = jaxpr.replace(constvars=constants, invars=inputs)
    return Program(moved, (*inside.consts, *captured))


def used_leaves(lowered: jax.stages.Lowered) -> tuple[int, ...]:
    """Return the positions of the leaves that a lowered function takes: JAX drops unused ones."""
    lowering = getattr(lowered, "_lowering")  # noqa: B009 - declared without `compile_args`
    return tuple(sorted(lowering.compile_args["kept_var_idx"]))


def arguments(
    stage: jax.stages.Traced | jax.stages.Lowered,
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments and keyword arguments of a stage, as pytrees of their types."""
    args: tuple[object, ...]
    kwargs: dict[str, object]
    args, kwargs = jax.tree.map(lambda info: avals.leaf(info._aval), stage.args_info)
    return args, kwargs
