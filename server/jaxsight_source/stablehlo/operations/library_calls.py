"""Calls of compute libraries, which optimized HLO has, as what they compute.

XLA's GPU compiler replaces matrix products and convolutions by custom calls of cuBLAS and cuDNN,
whose `backend_config` has what the call computes (`xla/service/gpu/backend_configs.proto`,
`cublas_cudnn.h`), and `top_k` by `TopK`. A call whose configuration asks for more than is known
here stays a call of a foreign function.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo.attributes import symbol
from jaxsight_source.stablehlo.evaluation import Array, OperationStep
from jaxsight_source.stablehlo.operations.comparators import keys_of
from jaxsight_source.stablehlo.program import UnreadableProgram


def library_call(step: OperationStep, target: str) -> Sequence[Array] | None:
    """Return the results of a library call; None if it is not known what it computes."""
    if target not in _READERS:
        return None
    try:
        config = json.loads(str(ir.StringAttr(step.attribute("backend_config")).value) or "{}")
        return _READERS[target](step, config)
    except (_UnknownCall, UnreadableProgram, KeyError, TypeError, ValueError):
        return None


class _UnknownCall(Exception):
    """A call computes something that is not known here."""


def _with_workspaces(step: OperationStep, result: Array) -> list[Array]:
    """Return the results of a call, of which those after the first are memory without a meaning."""
    first, *others = step.structs
    if any(one.dtype not in ("uint8", "int8") for one in others):
        raise _UnknownCall
    return [result.astype(first.dtype), *(jnp.zeros(one.shape, one.dtype) for one in others)]


_EPILOGUES = {
    "DEFAULT": (False, False),
    "BIAS": (True, False),
    "RELU": (False, True),
    "BIAS_RELU": (True, True),
}
"""Whether a matrix product has a bias, and whether negative results become zero."""


def _product(step: OperationStep, config: dict[str, Any]) -> Sequence[Array]:
    """Return `alpha * dot(lhs, rhs) + beta * addend`, with bias and activation."""
    config = config.get("gemm_backend_config", config)
    has_bias, has_relu = _EPILOGUES[config.get("epilogue", "DEFAULT")]
    if float(config.get("alpha_imag", 0)) or config.get("damax_output"):
        raise _UnknownCall
    left, right, *others = step.operands
    numbers = config["dot_dimension_numbers"]
    (lhs, rhs), (lhs_batch, rhs_batch) = (
        [[*map(int, numbers.get(f"{side}_{role}_dimensions", ()))] for side in ("lhs", "rhs")]
        for role in ("contracting", "batch")
    )
    axes = (lhs, rhs), (lhs_batch, rhs_batch)
    # The scales of both fp8 operands, then maybe of an fp8 addend, and of an fp8 result.
    scales = [each for each in others if not each.ndim]
    dtype = jnp.float32 if scales else step.dtype
    found = lax.dot_general(left, right, axes, preferred_element_type=dtype)
    for scale in scales[:2]:
        found *= scale
    if (alpha := float(config.get("alpha_real", 0))) != 1:
        found *= alpha
    others = [each for each in others if each.ndim]
    if beta := float(config.get("beta", 0)):
        addend = others.pop(0)
        if addend.dtype.itemsize == 1:
            raise _UnknownCall
        found += beta * addend.astype(dtype)
    if has_bias:
        found += others.pop(0).astype(dtype)
    if has_relu:
        found = jnp.maximum(found, 0)
    if others:
        raise _UnknownCall
    if len(scales) > 2 and step.dtype.itemsize == 1:
        found *= scales[-1]
    return _with_workspaces(step, found)


_KNOWN = {
    "activation_mode",
    "algorithm",
    "conv_result_scale",
    "feature",
    "leakyrelu_alpha",
    "reordered_int8_nchw_vect",
    "side_input_scale",
}


def _after_convolution(step: OperationStep, config: dict[str, Any]) -> Sequence[Array]:
    """Return a convolution with bias, side input and activation."""
    feature = config["feature"]
    config = config.get("cudnn_conv_backend_config", config)
    activation = config.get("activation_mode", "kNone")
    if config.keys() - _KNOWN or activation not in ("kNone", "kRelu"):
        raise _UnknownCall
    found, *others = step.operands
    if (scale := float(config.get("conv_result_scale", 1))) != 1:
        found *= scale
    if others:
        bias, *side = others
        found += jnp.expand_dims(bias, [axis for axis in range(found.ndim) if axis != feature])
        for extra in side:
            found += extra * float(config.get("side_input_scale", 0))
    if activation == "kRelu":
        found = jnp.maximum(found, 0)
    return _with_workspaces(step, found)


def _top_k(step: OperationStep, config: dict[str, Any]) -> Sequence[Array]:
    """Return the largest numbers and their positions."""
    (comparator,) = step.attribute("called_computations")
    run = step.evaluation.function(symbol(comparator))
    structs = step.structs
    (key, *others) = keys_of(run, [one.dtype for one in structs])
    if key.operand or not key.descending or others:
        raise _UnknownCall
    return lax.top_k(step.operand, structs[0].shape[-1])


_READERS: dict[str, Callable[[OperationStep, dict[str, Any]], Sequence[Array]]] = {
    "__cudnn$convForward": _after_convolution,
    "__cudnn$convBiasActivationForward": _after_convolution,
    "__cublas$gemm": _product,
    "__cublas$lt$matmul": _product,
    "__cublas$lt$matmul$f8": _product,
    "TopK": _top_k,
}
