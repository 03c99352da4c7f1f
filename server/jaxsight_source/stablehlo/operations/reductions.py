"""Reductions, of axes and of windows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.stablehlo.evaluation import Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.operations.regions import MONOIDS, constant_of, single_operation
from jaxsight_source.values.spelling import identity


def _starts_at_identity(name: str, step: OperationStep) -> bool:
    found = constant_of(step.operation.operands[1])
    if found is None or found.shape:
        return False
    expected = np.array(identity(name, found.dtype)).astype(found.dtype)
    return expected.tobytes() == found.tobytes()


@reads("stablehlo.reduce")
def reduce(step: OperationStep) -> Results:
    count = len(step.operands) // 2
    axes = step.integers("dimensions")
    name = single_operation(step.block(0))
    if count == 1 and name in MONOIDS and _starts_at_identity(MONOIDS[name], step):
        return getattr(lax, f"reduce_{MONOIDS[name]}")(step.operand, axes)
    run = step.region(0)
    return lax.reduce(step.operands[:count], step.operands[count:], lambda x, y: run(*x, *y), axes)


@reads("stablehlo.reduce_window")
def reduce_window(step: OperationStep) -> Results:
    count = len(step.operands) // 2
    window = _window(step)
    ones = (1,) * len(window["window_dimensions"])
    window["base_dilation"] = step.integers("base_dilations") or ones
    window["window_dilation"] = step.integers("window_dilations") or ones
    name = single_operation(step.block(0))
    primitive = getattr(lax, f"reduce_window_{MONOIDS.get(name)}_p", None)
    if count == 1 and primitive is not None and _starts_at_identity(MONOIDS[name], step):
        return primitive.bind(step.operand, **window)
    run = step.region(0)
    values, initial = step.operands[:count], step.operands[count:]
    return lax.reduce_window(values, initial, lambda x, y: run(*x, *y), **window)


@reads("stablehlo.select_and_scatter")
def select_and_scatter(step: OperationStep) -> Results:
    scalar = jnp.zeros((), step.operand.dtype)
    select, scatter = (_jaxpr(step, region, scalar) for region in (0, 1))
    return lax.select_and_scatter_p.bind(
        *step.operands,
        select_jaxpr=select,
        select_consts=(),
        scatter_jaxpr=scatter,
        scatter_consts=(),
        **_window(step),
    )


def _jaxpr(step: OperationStep, region: int, scalar: Array) -> object:
    run = step.region(region)
    return jax.make_jaxpr(lambda x, y: run(x, y)[0])(scalar, scalar).jaxpr


def _window(step: OperationStep) -> dict[str, Any]:
    sizes, padding = step.integers("window_dimensions"), step.integers("padding")
    return {
        "window_dimensions": sizes,
        "window_strides": step.integers("window_strides") or (1,) * len(sizes),
        "padding": tuple(zip(padding[::2], padding[1::2], strict=True)) or ((0, 0),) * len(sizes),
    }
