"""Traced functions, as `jax.jit(f).trace(x)` returns them, as programs to write."""

from __future__ import annotations

import jax

from jaxsight_source.compat.lowered import stages
from jaxsight_source.programs.given import GivenProgram, names_of
from jaxsight_source.text.names import identifier


def of_traced(traced: jax.stages.Traced) -> GivenProgram:
    """Return a traced function with its parameters and pytrees.

    Static arguments are not among its parameters: JAX does not keep their values.
    """
    args, kwargs = stages.arguments(traced)
    program = stages.program(traced)
    count = len(jax.tree.leaves((args, kwargs)))
    name = identifier(traced.fun_name.rpartition(".")[2], "program")
    results = jax.tree.structure(traced.out_info)
    return GivenProgram(program, name, args, kwargs, names_of(program, count), results)
