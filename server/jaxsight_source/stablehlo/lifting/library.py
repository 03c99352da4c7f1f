"""Calls of library functions that operations may have been lowered from.

JAX lowers a jitted function to a function of its name: `@relu`, `@_var`. Others are part of the
program that calls them; these are looked for around the operation that is typical of them.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping

import jax
import jax.numpy as jnp

from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.lifting.matching import LoweredCandidate, with_options
from jaxsight_source.stablehlo.operations.regions import constant_of, owner_of
from jaxsight_source.stablehlo.program import UnreadableProgram

_MODULES = (jax.nn, jnp, jax.random)
"""Where a function of a name is looked for."""

_MOST_VARIANTS = 12
"""The maximum number of options of a function to try: each is lowered, in some milliseconds."""


def library_calls(
    anchor: ir.Operation, functions: Mapping[str, ir.Operation]
) -> Iterator[LoweredCandidate]:
    """Yield the calls of library functions that may have been lowered to an operation."""
    try:
        match anchor.name:
            case "func.call":
                yield from _by_name(anchor, functions)
            case "stablehlo.exponential":
                yield from _exponentials(anchor)
            case "stablehlo.tanh" | "chlo.erf" | "chlo.erfc":
                struct = attributes.struct(anchor.operands[0].type)
                for approximate in (True, False):
                    yield _candidate(jax.nn.gelu, (struct,), approximate=approximate)
    except UnreadableProgram:  # a type that JAX lacks
        return


def _exponentials(anchor: ir.Operation) -> Iterator[LoweredCandidate]:
    struct = attributes.struct(anchor.results[0].type)
    operand = owner_of(anchor.operands[0])
    if operand is not None and operand.name == "stablehlo.negate":
        yield _candidate(jax.nn.silu, (struct,))
        yield _candidate(jax.nn.sigmoid, (struct,))
    for use in anchor.results[0].uses:
        if use.owner.operation.name == "stablehlo.reduce":
            axis = _axis(use.owner.operation)
            yield _candidate(jax.nn.softmax, (struct,), axis=axis)
            yield _candidate(jax.nn.log_softmax, (struct,), axis=axis)
            for keeps in (False, True):
                yield _candidate(jax.nn.logsumexp, (struct,), axis=axis, keepdims=keeps)


def _axis(reduction: ir.Operation) -> int | tuple[int, ...]:
    axes = tuple(attributes.integers(reduction.attributes["dimensions"]))
    return axes[0] if len(axes) == 1 else axes


def _by_name(
    anchor: ir.Operation, functions: Mapping[str, ir.Operation]
) -> Iterator[LoweredCandidate]:
    """Yield calls of public functions of the name of the function that is called."""
    callee = attributes.symbol(anchor.attributes["callee"])
    name = callee.strip("_").rstrip("_0123456789")  # MLIR numbers functions of one name
    if callee not in functions:
        return
    block = functions[callee].regions[0].blocks[0]
    constants = [constant_of(operand) for operand in anchor.operands]
    given = [one.item() if one is not None and not one.shape else None for one in constants]
    numbers = [one for one in given if one is not None]
    arrays = tuple(
        attributes.struct(operand.type)
        for operand, one in zip(anchor.operands, constants, strict=True)
        if one is None or one.shape
    )
    result = attributes.struct(anchor.results[0].type) if len(anchor.results) == 1 else None
    for module in _MODULES:
        function = getattr(module, name, None)
        if not callable(function) or not arrays:
            continue
        if numbers and len(numbers) + len(arrays) == len(given):
            yield LoweredCandidate(_with_numbers(function, tuple(given)), arrays, calls=True)
        variants = _variants(function, block, arrays, result, numbers)
        for options in itertools.islice(variants, _MOST_VARIANTS):
            yield _candidate(function, arrays, **options)


def _variants(
    function: Callable[..., object],
    block: ir.Block,
    arrays: tuple[jax.ShapeDtypeStruct, ...],
    result: jax.ShapeDtypeStruct | None,
    numbers: list[object],
) -> Iterator[dict[str, object]]:
    """Yield options of a function: numbers that it is called with, axes, sizes."""
    names = [*inspect.signature(function).parameters]
    fixed: dict[str, object] = {}
    if result is not None and "shape" in names:
        fixed["shape"] = result.shape
    if result is not None and result.shape and "num_classes" in names:
        fixed["num_classes"] = result.shape[-1]
    rest = [name for name in names[len(arrays) :] if name not in fixed]
    given: list[dict[str, object]] = [{}]
    if numbers:
        given.append(dict(zip(rest, numbers, strict=False)))
        if "ddof" in names:
            given.append({"ddof": numbers[0]})
    operations = [each.operation for each in block.operations]
    if "k" in names:
        scalars = [constant_of(one.results[0]) for one in operations if one.results]
        given += [{"k": one.item()} for one in scalars if one is not None and one.dtype.kind == "i"]
    axes: list[dict[str, object]] = [{}]
    if "axis" in names:
        reduced = [_axis(one) for one in operations if one.name == "stablehlo.reduce"]
        axes += [{"axis": axis} for axis in reduced[:1] or range(len(arrays[0].shape))]
        if "keepdims" in names:
            axes += [one | {"keepdims": True} for one in axes]
    for options, axis in itertools.product(given, axes):
        yield fixed | options | axis


def _candidate(
    function: Callable[..., object], inputs: tuple[jax.ShapeDtypeStruct, ...], **options: object
) -> LoweredCandidate:
    return LoweredCandidate(with_options(function, **options), inputs, calls=True)


@functools.lru_cache(maxsize=512, typed=True)
def _with_numbers(
    function: Callable[..., object], numbers: tuple[object, ...]
) -> Callable[..., object]:
    """Return a function of arrays, with numbers of Python wherever there is one in `numbers`."""

    def called(*arrays: object) -> object:
        rest = iter(arrays)
        return function(*(next(rest) if one is None else one for one in numbers))

    return called
