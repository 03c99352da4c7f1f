"""The operation that first makes a NaN, also inside of loops, calls and `jax.shard_map`.

Operations of a `jax.shard_map` cannot run alone (see jax-ml/jax#26796 for `jax_debug_nans` there):
each device runs the body on its shard, and the results of all operations are tested together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_repro.reducing.equations.evaluation import EquationRun, FirstNan, stop_at_nan
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.parameters import shard_map
from jaxsight_source.compat.staging import Program, opened


def first_nan(program: Program, arguments: Sequence[jax.Array]) -> Equation | None:
    """Return the innermost equation that first makes a NaN; None if none does when run alone."""
    try:
        with jax.debug_nans(False):
            EquationRun(is_split=True, observe=stop_at_nan).program(program, arguments, ())
    except FirstNan as found:
        return _in_shards(found.equation, found.operands)
    return None


def _in_shards(equation: Equation, operands: Sequence[jax.Array]) -> Equation:
    """Return the equation in a `shard_map` that first makes a NaN; others are returned as they are.

    Args:
        equation: any equation whose results have a NaN.
        operands: its operands, of the whole mesh.
    """
    if equation.primitive.name != "shard_map":
        return equation
    mapped = shard_map(equation.params)
    program = opened(mapped.body)
    jaxpr = program.jaxpr
    constants = cast(tuple[jax.Array, ...], program.consts)

    def tested(*shards: jax.Array) -> jax.Array:
        values = dict(zip(map(id, jaxpr.invars), shards, strict=True))
        values.update(zip(map(id, jaxpr.constvars), constants, strict=True))
        has = [jnp.array(False)] * len(jaxpr.eqns)
        steps = EquationRun(is_split=False).steps(jaxpr.eqns, values)
        for position, (_, results) in enumerate(steps):
            for result in results:
                if jnp.issubdtype(result.dtype, jnp.inexact):
                    has[position] |= jnp.isnan(result).any()
        return jnp.stack(has)[None]

    each_shard = jax.shard_map(
        tested,
        mesh=mapped.mesh,
        in_specs=mapped.in_specs,
        out_specs=jax.P(tuple(mapped.mesh.axis_names)),  # type: ignore[no-untyped-call]
        axis_names=set(mapped.manual),
        check_vma=mapped.check_vma,
    )
    flags = np.asarray(jax.jit(each_shard)(*operands)).any(axis=0)
    if not flags.any():
        return equation
    inner: Equation = jaxpr.eqns[int(flags.argmax())]
    return inner
