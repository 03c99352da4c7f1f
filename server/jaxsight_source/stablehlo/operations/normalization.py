"""Batch normalization, which JAX has no operation for: the computation that XLA makes of it.

The order of the operations decides the bits of the results; it is that of XLA's pass
`batchnorm-expander` (`xla/service/batchnorm_expander.cc`).
"""

from __future__ import annotations

import math

import numpy as np
from jax import lax

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo.evaluation import Array, OperationStep, Results, reads


class _Features:
    """An operand of a normalization, and the axis that is not reduced."""

    def __init__(self, step: OperationStep) -> None:
        step.evaluation.expanded = True
        self.shape, self.dtype = step.operand.shape, step.operand.dtype
        self.axis = step.integer("feature_index")
        self.others = tuple(axis for axis in range(len(self.shape)) if axis != self.axis)
        self.number = np.array(math.prod(self.shape[axis] for axis in self.others), self.dtype)
        self.epsilon = np.array(ir.FloatAttr(step.attribute("epsilon")).value, self.dtype)

    def broadcast(self, x: Array) -> Array:
        """Return numbers of features, or one number, for each element."""
        return lax.broadcast_in_dim(x, self.shape, (self.axis,) if x.ndim else ())

    def for_each(self, x: np.ndarray) -> Array:
        """Return a number for each feature."""
        return lax.broadcast(x, (self.shape[self.axis],))

    def sum(self, x: Array) -> Array:
        """Return the sum of each feature."""
        return lax.reduce_sum(x, self.others)


@reads("stablehlo.batch_norm_inference")
def inference(step: OperationStep) -> Array:
    of = _Features(step)
    x, scale, offset, mean, variance = step.operands
    scale = lax.mul(scale, lax.rsqrt(lax.add(variance, of.for_each(of.epsilon))))
    shift = lax.sub(offset, lax.mul(mean, scale))
    return lax.add(lax.mul(x, of.broadcast(scale)), of.broadcast(shift))


@reads("stablehlo.batch_norm_training")
def training(step: OperationStep) -> Results:
    of = _Features(step)
    x, scale, offset = step.operands
    number = of.for_each(of.number)
    squares = of.sum(lax.mul(x, x))
    mean = lax.div(of.sum(x), number)
    variance = lax.sub(lax.div(squares, number), lax.mul(mean, mean))
    deviation = lax.rsqrt(lax.add(of.broadcast(variance), of.broadcast(of.epsilon)))
    normalized = lax.mul(lax.sub(x, of.broadcast(mean)), deviation)
    scaled = lax.mul(normalized, of.broadcast(scale))
    return lax.add(scaled, of.broadcast(offset)), mean, variance


@reads("stablehlo.batch_norm_grad")
def gradient(step: OperationStep) -> Results:
    of = _Features(step)
    x, scale, mean, variance, upstream = step.operands
    variances, epsilons = of.broadcast(variance), of.broadcast(of.epsilon)
    centered = lax.sub(x, of.broadcast(mean))
    products = of.sum(lax.mul(upstream, centered))
    of_offset = of.sum(upstream)
    deviation = lax.rsqrt(lax.add(variance, of.for_each(of.epsilon)))
    number = of.broadcast(of.number)
    factor = lax.div(lax.mul(of.broadcast(scale), lax.rsqrt(lax.add(variances, epsilons))), number)
    # XLA adds again, and so divides by another broadcast than above.
    shifted = lax.add(variances, epsilons)
    by_variance = lax.div(lax.mul(of.broadcast(products), centered), shifted)
    by_mean = lax.sub(lax.mul(upstream, number), of.broadcast(of_offset))
    of_x = lax.mul(factor, lax.sub(by_mean, by_variance))
    return of_x, lax.mul(products, deviation), of_offset
