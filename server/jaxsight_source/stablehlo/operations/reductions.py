"""Reductions, of axes and of windows."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.stablehlo.evaluation import Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.operations.regions import constant_of, single_operation

_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "stablehlo.add": lax.reduce_sum,
    "stablehlo.multiply": lax.reduce_prod,
    "stablehlo.maximum": lax.reduce_max,
    "stablehlo.minimum": lax.reduce_min,
    "stablehlo.and": lax.reduce_and,
    "stablehlo.or": lax.reduce_or,
    "stablehlo.xor": lax.reduce_xor,
}

_WINDOWS = {
    "stablehlo.add": lax.reduce_window_sum_p,
    "stablehlo.maximum": lax.reduce_window_max_p,
    "stablehlo.minimum": lax.reduce_window_min_p,
}


def _identity(name: str, dtype: np.dtype) -> object:
    """Return the value that a reduction starts from in JAX, with which nothing changes."""
    if name in ("stablehlo.maximum", "stablehlo.minimum"):
        sign = 1 if name == "stablehlo.minimum" else -1
        if dtype == bool:
            return sign == 1
        if jnp.issubdtype(dtype, jnp.integer):
            limits = jnp.iinfo(dtype)
            return limits.max if sign == 1 else limits.min
        return np.inf * sign
    if name == "stablehlo.and":
        return True if dtype == bool else -1
    return 1 if name == "stablehlo.multiply" else 0


def _starts_at_identity(name: str, step: OperationStep) -> bool:
    found = constant_of(step.operation.operands[1])
    if found is None or found.shape:
        return False
    expected = np.array(_identity(name, found.dtype)).astype(found.dtype)
    return expected.tobytes() == found.tobytes()


@reads("stablehlo.reduce")
def reduce(step: OperationStep) -> Results:
    count = len(step.operands) // 2
    axes = step.integers("dimensions")
    name = single_operation(step.block(0))
    if count == 1 and name in _REDUCTIONS and _starts_at_identity(name, step):
        return _REDUCTIONS[name](step.operand, axes)
    run = step.region(0)
    return lax.reduce(step.operands[:count], step.operands[count:], lambda x, y: run(*x, *y), axes)


@reads("stablehlo.reduce_window")
def reduce_window(step: OperationStep) -> Results:
    count = len(step.operands) // 2
    sizes = step.integers("window_dimensions")
    ones = (1,) * len(sizes)
    padding = _pairs(step.integers("padding")) or ((0, 0),) * len(sizes)
    strides = step.integers("window_strides") or ones
    base = step.integers("base_dilations") or ones
    window = step.integers("window_dilations") or ones
    name = single_operation(step.block(0))
    if count == 1 and name in _WINDOWS and _starts_at_identity(name, step):
        return _WINDOWS[name].bind(
            step.operand,
            window_dimensions=sizes,
            window_strides=strides,
            padding=padding,
            base_dilation=base,
            window_dilation=window,
        )
    run = step.region(0)
    return lax.reduce_window(
        step.operands[:count],
        step.operands[count:],
        lambda x, y: run(*x, *y),
        sizes,
        strides,
        padding,
        base,
        window,
    )


@reads("stablehlo.select_and_scatter")
def select_and_scatter(step: OperationStep) -> Results:
    sizes = step.integers("window_dimensions")
    padding = _pairs(step.integers("padding")) or ((0, 0),) * len(sizes)
    strides = step.integers("window_strides") or (1,) * len(sizes)
    scalar = jnp.zeros((), step.operand.dtype)
    select, scatter = (_jaxpr(step, region, scalar) for region in (0, 1))
    return lax.select_and_scatter_p.bind(
        *step.operands,
        select_jaxpr=select,
        select_consts=(),
        scatter_jaxpr=scatter,
        scatter_consts=(),
        window_dimensions=sizes,
        window_strides=strides,
        padding=padding,
    )


def _jaxpr(step: OperationStep, region: int, scalar: Array) -> object:
    run = step.region(region)
    return jax.make_jaxpr(lambda x, y: run(x, y)[0])(scalar, scalar).jaxpr


def _pairs(numbers: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))
