"""The user's own compiler options, if they affect predictions and displayed kernels.

The options of `jax.jit(f, compiler_options=…)` are XLA's debug options.
JAX documents the one that disables constant folding (jax#39786).
"""

from __future__ import annotations

from jax.stages import Traced

from jaxsight.tracer.compat import lowering
from jaxsight.tracer.programs import folding_costs
from jaxsight.wire.messages.replies import Fold

_PASSES = "xla_disable_hlo_passes"
_FOLDING = "constant_folding"


def compiler_options(traced: Traced) -> tuple[tuple[str, str], ...]:
    """Return the options with which a traced function is compiled for every target.

    Others may be unknown to a target's compiler.
    """
    passes = lowering.compiler_options(traced).get(_PASSES)
    return ((_PASSES, passes),) if isinstance(passes, str) and passes else ()


def folds(traced: Traced) -> tuple[Fold, ...]:
    """Return the predicted folds of a traced function, none if its options disable folding."""
    passes = dict(compiler_options(traced)).get(_PASSES, "")
    return () if _FOLDING in passes.split(",") else folding_costs.folds(traced.jaxpr)
