"""Calls of foreign functions, and operations that JAX's own libraries name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.compat.lowered.mlir import dialect, ir
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.attributes import symbol
from jaxsight_source.stablehlo.evaluation import READERS, Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.operations.elementwise import elementwise
from jaxsight_source.stablehlo.operations.indexing import keys_of
from jaxsight_source.stablehlo.program import OpaqueCall, UnreadableProgram

_IDENTITIES = {
    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
}  # fmt: skip
"""Where arrays are, on several devices: on one device they return their operand."""

_TYPED = 4
"""The version of calls of XLA's typed foreign functions
(https://openxla.org/stablehlo/spec#custom_call)."""


def names_of(found: object) -> Iterator[str]:
    """Yield the names of attributes, which are iterated by name since jaxlib 0.9."""
    for each in found:  # type: ignore[attr-defined]
        yield each if isinstance(each, str) else each.name


@reads("stablehlo.custom_call")
def custom_call(step: OperationStep) -> Results:
    target = str(ir.StringAttr(step.attribute("call_target_name")).value)
    if target in _IDENTITIES:
        return step.operands
    if target == "mhlo.topk":  # as JAX 0.8 exports it
        return jax.lax.top_k(step.operand, _topk(step))
    function = elementwise(target.replace("mhlo.", "chlo."))
    if function is not None and target.startswith("mhlo."):
        return function(*step.operands)
    found = library_call(step, target)
    return foreign(step, target) if found is None else found


def _topk(step: OperationStep) -> int:
    told = step.attribute("mhlo.attributes")
    if "largest" in names_of(told) and str(told["largest"]) != "true":
        raise UnreadableProgram("expected the largest values")
    return attributes.integer(told["k"])


def foreign(step: OperationStep, target: str) -> Results:
    """Return a call of a foreign function, with its attributes."""
    told = next(
        (
            step.attribute(name)
            for name in ("mhlo.backend_config", "backend_config")
            if step.has(name) and isinstance(step.attribute(name), ir.DictAttr)
        ),
        None,
    )
    given = {name: _value(told[name]) for name in names_of(told)} if told is not None else {}
    legacy = None
    version = step.integer("api_version") if step.has("api_version") else 1
    if told is not None:
        version = _TYPED
    elif step.has("backend_config"):
        legacy = str(ir.StringAttr(step.attribute("backend_config")).value) or None
    shown = tuple((name, str(told[name])) for name in names_of(told)) if told is not None else ()
    step.evaluation.opaque.append(OpaqueCall(target, shown))
    call = jax.ffi.ffi_call(
        target,
        step.structs,
        has_side_effect=step.flag("has_side_effect"),
        input_layouts=_layouts(step, "operand_layouts"),
        output_layouts=_layouts(step, "result_layouts"),
        input_output_aliases=_aliases(step),
        custom_call_api_version=version,
        legacy_backend_config=legacy,
    )
    arrays = [operand for operand in step.operands if operand is not None]
    return step.with_tokens(call(*arrays, **given))


def _layouts(step: OperationStep, name: str) -> list[tuple[int, ...]] | None:
    """Return layouts from the slowest dimension to the fastest; StableHLO has them reversed."""
    if not step.has(name):
        return None
    return [tuple(int(axis) for axis in np.array(each))[::-1] for each in step.attribute(name)]


def _aliases(step: OperationStep) -> dict[int, int] | None:
    if not step.has("output_operand_aliases"):
        return None
    found = {}
    for each in step.attribute("output_operand_aliases"):
        alias = dialect.OutputOperandAlias(each)
        found[alias.operand_index] = next(iter(alias.output_tuple_indices), 0)
    return found or None


def _value(attribute: ir.Attribute) -> object:
    """Return an attribute of a foreign function as `ffi_call` takes it."""
    if isinstance(attribute, ir.StringAttr):
        return str(attribute.value)
    if isinstance(attribute, ir.BoolAttr):
        return bool(attribute.value)
    if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr):
        return attributes.dtype_of(attribute.type).type(attribute.value)
    if isinstance(attribute, ir.DictAttr):
        return {name: _value(attribute[name]) for name in names_of(attribute)}
    text = str(attribute)
    if text.startswith("array<"):
        element = text[len("array<") :].partition(":")[0].rstrip(">")
        return np.array(attributes.integers(attribute), attributes.dtype_of(element))
    raise UnreadableProgram(f"expected a number, a string or an array, got {text[:40]}")


@reads("stablehlo.composite")
def composite(step: OperationStep) -> Results:
    """Return the operation that a composite stands for, or a composite of its decomposition."""
    name = str(ir.StringAttr(step.attribute("name")).value)
    given = step.attribute("composite_attributes") if step.has("composite_attributes") else {}
    if name == "chlo.top_k":
        return jax.lax.top_k(step.operand, attributes.integer(given["k"]))
    function = elementwise(name)
    if function is not None:
        return function(*step.operands)
    if name in READERS:
        raise UnreadableProgram(f"expected a composite of elements, got {name}")
    decomposition = step.evaluation.function(attributes.symbol(step.attribute("decomposition")))
    version = step.integer("version") if step.has("version") else 0
    values = {key: _value(given[key]) for key in names_of(given)}
    return jax.lax.composite(lambda *operands, **_: decomposition(*operands), name, version)(
        *step.operands, **values
    )


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
    "DEFAULT": (False, False), "BIAS": (True, False), "RELU": (False, True),
    "BIAS_RELU": (True, True),
}  # fmt: skip
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
    "activation_mode", "algorithm", "conv_result_scale", "feature", "leakyrelu_alpha",
    "reordered_int8_nchw_vect", "side_input_scale",
}  # fmt: skip


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
    "__cudnn$convForward": _after_convolution, "__cublas$gemm": _product,
    "__cudnn$convBiasActivationForward": _after_convolution, "__cublas$lt$matmul": _product,
    "__cublas$lt$matmul$f8": _product, "TopK": _top_k,
}  # fmt: skip
