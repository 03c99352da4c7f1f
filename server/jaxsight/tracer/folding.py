"""What XLA would compute while it compiles, predicted from the jaxpr: a fold of a large sort takes minutes, and nobody should wait to learn that.

XLA folds an operation when at least one operand is a constant and the others are constants, broadcasts of constants or iotas; not broadcasts and iotas
themselves, FFTs, loops, random bits, paddings of broadcasts, nor results of more than 45 million elements (`HloConstantFolding`, as seen in its behaviour).

The time of a fold is that of XLA's evaluator, which computes one element after another: measured on one core for f32 (JAX 0.10.2), nanoseconds for each element
of the largest operand. They are rough, and only their order of magnitude matters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jaxsight.tracer import protocol
from jaxsight.tracer.compat import jaxprs

LARGEST = 45_000_000
"""Elements of a result from which XLA leaves an operation alone."""
SMALLEST = 65_536
"""Elements below which a fold is nobody's concern."""
TRAP = 10.0
"""Seconds of folding from which a compile is not begun."""

_VALUE, _REGULAR, _UNKNOWN = "value", "regular", "unknown"
"""A constant; a broadcast of one, or an iota; what is known at run time alone."""

_NEVER = frozenset(
    {
        "fft", "while", "scan", "random_bits", "rng_bit_generator", "rng_uniform", "threefry2x32", "pure_callback",
        "io_callback", "debug_callback", "custom_call", "ffi_call", "pallas_call", "optimization_barrier",
        "all_gather", "all_reduce", "psum", "ppermute", "infeed", "outfeed", "shard_map", "custom_partitioning",
    }
)  # fmt: skip

_REGULAR_ONES = frozenset({"broadcast_in_dim", "iota", "broadcast"})

_THROUGH = frozenset(
    {
        "jit", "pjit", "closed_call", "core_call", "eval_jaxpr", "custom_jvp_call", "custom_vjp_call",
        "custom_vjp_call_jaxpr",
    }
)  # fmt: skip
"""Calls that XLA inlines. A checkpoint's is not among them: its operands go through a barrier."""

_NANOSECONDS: Mapping[str, float] = {
    "sort": 7_000.0,  # times log2 of the elements
    "top_k": 7_000.0,
    "cumsum": 6_000.0,
    "cumprod": 6_000.0,
    "cummax": 6_000.0,
    "cummin": 6_000.0,
    "cumlogsumexp": 6_000.0,
    "reduce_window": 3_000.0,
    "reduce_window_sum": 3_000.0,
    "conv_general_dilated": 5_000.0,
    "scatter": 300.0,
    "scatter_add": 300.0,
    "scatter-add": 300.0,
    "gather": 300.0,
}
_OTHERS = 20.0
"""Of elementwise operations, reductions and moves."""


def folds(jaxpr: Any) -> tuple[protocol.Fold, ...]:
    """The folds of some size, in the order of the program; those of inner jaxprs too where their operands are known."""
    opened = jaxprs.open_jaxpr(jaxpr)
    inputs = [_UNKNOWN] * len(opened.invars)
    found = list(_folds(opened, inputs, "", {}))
    return tuple(found)


def _folds(
    opened: Any, inputs: list[str], prefix: str, results: dict[int, list[str]]
) -> Iterator[protocol.Fold]:
    """The folds in one jaxpr; `results` gets what its outputs are, by its identity."""
    known: dict[Any, str] = dict(zip(opened.invars, inputs, strict=True))
    for var in opened.constvars:
        known[var] = _VALUE

    def of(var: Any) -> str:
        if hasattr(var, "val"):
            return _VALUE
        return known.get(var, _UNKNOWN)

    for index, equation in enumerate(opened.eqns):
        path = f"{prefix}{index}"
        operands = [of(var) for var in equation.invars]
        name = equation.primitive.name
        parts = list(jaxprs.inner(equation)) if equation.params else []
        if name in _THROUGH and len(parts) >= 1 and len(parts[0].jaxpr.invars) == len(operands):
            inner = parts[0]
            below: dict[int, list[str]] = {}
            yield from _folds(inner.jaxpr, operands, f"{path}/{inner.name}/", below)
            given = below.get(id(inner.jaxpr), [])
        else:
            given = [_kind(name, operands)] * len(equation.outvars)
            elements = max((_elements(var) for var in equation.outvars), default=0)
            if given and given[0] == _VALUE and elements <= LARGEST:
                fold = _fold(equation, path, name)
                if fold.elements >= SMALLEST:
                    yield fold
            elif given and elements > LARGEST:
                given = [_UNKNOWN] * len(given)
        known.update(zip(equation.outvars, given, strict=False))
    results[id(opened)] = [of(var) for var in opened.outvars]


def _kind(name: str, operands: list[str]) -> str:
    if name in _NEVER:
        return _UNKNOWN
    if name in _REGULAR_ONES:
        return _REGULAR if all(each != _UNKNOWN for each in operands) else _UNKNOWN
    if not operands or _UNKNOWN in operands:
        return _UNKNOWN
    return _VALUE if _VALUE in operands else _UNKNOWN


def _fold(equation: Any, path: str, name: str) -> protocol.Fold:
    operands = [_elements(var) for var in equation.invars]
    outputs = [_elements(var) for var in equation.outvars]
    work = max([*operands, *outputs], default=0)
    nanoseconds = _NANOSECONDS.get(name, _OTHERS)
    if name in ("sort", "top_k"):
        nanoseconds *= math.log2(max(work, 2))
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        work = max(outputs, default=0) * math.prod(shape[axis] for axis in contracted)
        nanoseconds = 5.0
    seconds = work * nanoseconds * 1e-9
    size = sum(count * _width(var) for count, var in zip(outputs, equation.outvars, strict=True))
    return protocol.Fold(path, name, max(outputs, default=0), size, seconds, seconds >= TRAP)


def _elements(var: Any) -> int:
    shape = getattr(getattr(var, "aval", None), "shape", ())
    return math.prod(size for size in shape if isinstance(size, int))


def _width(var: Any) -> int:
    dtype = getattr(getattr(var, "aval", None), "dtype", None)
    return int(getattr(dtype, "itemsize", 4) or 4)
