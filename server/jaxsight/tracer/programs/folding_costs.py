"""Predict constant folding from a jaxpr, as folding a large sort takes XLA minutes.

XLA folds an operation if at least one operand is a constant array and the others are constants,
broadcasts of constants or iotas (`HloConstantFolding`).
Operations on iotas and broadcasts alone (the masks of `jnp.tril`, `jnp.triu`, `jnp.eye`,
`jnp.linspace`, paddings of `jnp.ones`) are not folded, and neither are operations that read their
results.
FFTs, loops, random bits, library calls and operations with more than 45 million elements in their
result, or in their operands together, are not folded either.
Each rule was verified in optimized HLO of JAX 0.10.2 and 0.12.0.1, compiled with and without
`xla_disable_hlo_passes=constant_folding`.

The time of a fold is that of XLA's evaluator, which computes one element at a time: nanoseconds per
element of the largest operand, measured on one core for f32 (JAX 0.10.2).
They are rough, as only their order of magnitude matters.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping

import numpy as np
from jax.stages import Traced

from jaxsight.tracer.compat import lowering
from jaxsight.wire import primitives
from jaxsight.wire.messages.replies import Fold
from jaxsight.wire.primitives import CUMULATIVE, ELEMENTWISE, INLINED, REDUCTIONS, RESHAPES
from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Equation, Jaxpr, Var
from jaxsight_source.compat.staging import open_jaxpr

LARGEST = 45_000_000
"""Maximum number of elements of a result that XLA folds, and of all operands together
(`kMaximumConstantSizeElements` in `xla/hlo/transforms/simplifiers/hlo_constant_folding.cc`)."""
SMALLEST = 65_536
"""Minimum number of elements of a fold that is reported, 1.3 ms at `_OTHER_NANOSECONDS` each."""
LONG = 0.1
"""Seconds of a fold that is reported though its result is small, as that of `top_k`."""
TRAP = 10.0
"""Programs that fold for as many seconds are compiled without constant folding, so that an editor
does not wait: predictions are right to the order of magnitude."""


class _Known(enum.Enum):
    """What is known of an operand: its values, that they follow a rule (or are one), nothing."""

    VALUE = enum.auto()
    REGULAR = enum.auto()
    UNKNOWN = enum.auto()


_VALUE, _REGULAR, _UNKNOWN = _Known
"""A constant array; a broadcast of a constant, an iota or a scalar; an unknown value."""


_BROADCASTS = frozenset({"broadcast_in_dim", "iota", "broadcast"})

_COPIES = frozenset({"stop_gradient", "copy", "copy_p"})
"""Operations that are not in XLA's program."""

_OF_ALL = frozenset({"dot_general", "conv_general_dilated"})
"""Operations that are folded only if every operand is a constant array."""

_WINDOWS = frozenset(
    {"reduce_window", "reduce_window_max", "reduce_window_min", "reduce_window_sum"}
)

_OF_FIRST = frozenset(
    {"dynamic_slice", "dynamic_update_slice", "pad", "rev", "slice", "sort", "top_k", "transpose"}
).union(REDUCTIONS, CUMULATIVE, RESHAPES, _WINDOWS)
"""Operations that are folded if their first operand is a constant array."""

_OF_ANY = (ELEMENTWISE - _COPIES) | primitives.SCATTERS | {"concatenate", "gather"}
"""Operations that are folded if any operand is a constant array and none is unknown."""

_LAYOUTS = RESHAPES | {"broadcast_in_dim", "transpose"}
"""Operations that change the layout of a constant, and take no time."""

_CALLS = INLINED | {"eval_jaxpr"}

_NANOSECONDS: Mapping[str, float] = {
    "sort": 7_000.0,  # times log2 of the elements
    "top_k": 7_000.0,  # as a sort, which it becomes on CPUs
    **dict.fromkeys(CUMULATIVE, 6_000.0),
    **dict.fromkeys(_WINDOWS, 3_000.0),
    "conv_general_dilated": 5_000.0,
    "scatter": 300.0,
    "scatter-add": 300.0,
    "gather": 300.0,
}
_OTHER_NANOSECONDS = 20.0
"""Nanoseconds per element for elementwise operations, reductions and moves."""


_PASSES = "xla_disable_hlo_passes"


def compiler_options(traced: Traced) -> tuple[tuple[str, str], ...]:
    """Return the user's options with which a traced function is compiled for every target.

    The options of `jax.jit(f, compiler_options=…)` are XLA's debug options, of which others may be
    unknown to a target's compiler. JAX documents the one that disables constant folding
    (jax#39786).
    """
    passes = lowering.compiler_options(traced).get(_PASSES)
    return ((_PASSES, passes),) if isinstance(passes, str) and passes else ()


def predicted(traced: Traced) -> tuple[Fold, ...]:
    """Return the folds of a traced function, none if its options disable folding."""
    passes = dict(compiler_options(traced)).get(_PASSES, "")
    return () if "constant_folding" in passes.split(",") else folds(traced.jaxpr)


def folds(jaxpr: object) -> tuple[Fold, ...]:
    """Return the folds of 65,536 elements or more, and others that take long, in program order.

    Args:
        jaxpr: a closed jaxpr; calls that XLA inlines are followed.
    """
    opened = open_jaxpr(jaxpr)
    constants = getattr(jaxpr, "consts", ())
    kinds: dict[object, _Known] = {
        var: _captured(value) for var, value in zip(opened.constvars, constants, strict=False)
    }
    return tuple(_folds(opened, [_UNKNOWN] * len(opened.invars), kinds, "", []))


def _folds(
    opened: Jaxpr,
    inputs: list[_Known],
    constants: Mapping[object, _Known],
    prefix: str,
    results: list[_Known],
) -> Iterator[Fold]:
    """Yield the folds in a jaxpr; `results` is filled with the kinds of its outputs."""
    kinds: dict[object, _Known] = dict(zip(opened.invars, inputs, strict=True))
    for var in opened.constvars:
        kinds[var] = constants.get(var, _VALUE)

    def of(var: Var) -> _Known:
        kind = _captured(var.val) if hasattr(var, "val") else kinds.get(var, _UNKNOWN)
        # The scalar operand of an operation is broadcast.
        return _REGULAR if kind == _VALUE and _elements(var) <= 1 else kind

    for index, equation in enumerate(opened.eqns):
        path = f"{prefix}{index}"
        operands = [of(var) for var in equation.invars]
        name = equation.primitive.name
        parts = list(inner_jaxprs(equation))
        result_kinds: list[_Known]
        if name in _CALLS and len(parts) >= 1 and len(parts[0].jaxpr.invars) == len(operands):
            result_kinds = []
            inner = parts[0]
            yield from _folds(inner.jaxpr, operands, {}, f"{path}/{inner.name}/", result_kinds)
        else:
            result_kinds = [_kind(equation, operands)] * len(equation.outvars)
            elements = max((_elements(var) for var in equation.outvars), default=0)
            # Scalar operands of elementwise operations are broadcast before. There is no limit for
            # operations with several results.
            least = elements if name in ELEMENTWISE else 0
            involved = sum(max(least, _elements(var)) for var in equation.invars)
            if len(equation.outvars) == 1 and max(elements, involved) > LARGEST:
                result_kinds = [_UNKNOWN] * len(result_kinds)
            elif result_kinds and result_kinds[0] == _VALUE and name not in (_LAYOUTS | _COPIES):
                fold = _fold(equation, path, name)
                if fold.elements >= SMALLEST or fold.seconds >= LONG:
                    yield fold
        kinds.update(zip(equation.outvars, result_kinds, strict=False))
    results += [of(var) for var in opened.outvars]


def _kind(equation: Equation, operands: list[_Known]) -> _Known:
    """Return the kind of an equation's results."""
    name = equation.primitive.name
    elements = max((_elements(var) for var in equation.outvars), default=0)
    if _UNKNOWN in operands:
        return _UNKNOWN
    if name in _BROADCASTS:
        if not operands:
            return _REGULAR
        operand_elements = _elements(equation.invars[0])
        if elements == operand_elements:  # if it only adds axes of length 1, it is a reshape
            return operands[0]
        # The broadcast of an iota is neither a constant nor a broadcast of one.
        return _REGULAR if operands[0] == _VALUE or operand_elements <= 1 else _UNKNOWN
    if not operands:
        return _UNKNOWN
    if name in _COPIES:
        return operands[0]
    if elements <= 1 and name in ELEMENTWISE:
        return _REGULAR
    if name in _OF_ALL:
        is_folded = all(kind == _VALUE for kind in operands)
    elif name in _OF_FIRST:
        is_folded = operands[0] == _VALUE
    else:
        is_folded = name in _OF_ANY and _VALUE in operands
    return _VALUE if is_folded else _UNKNOWN


def _captured(value: object) -> _Known:
    """Return the kind of a captured array.

    XLA converts equal elements to a broadcast, and `0, 1, 2, …` to an iota
    (`AlgebraicSimplifier::HandleConstant` of openxla/xla).
    """
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        return _VALUE  # a key array, whose data cannot be read
    if not SMALLEST <= array.size <= LARGEST or array.dtype.kind not in "biufc":
        return _VALUE
    flat = array.reshape(-1)
    if flat[0] == flat[-1] and bool((flat == flat[0]).all()):
        return _REGULAR
    steps = array.ndim == 1 and array.dtype.kind in "iuf" and flat[0] == 0 and flat[1] == 1
    return _REGULAR if steps and bool((np.diff(flat) == 1).all()) else _VALUE


def _fold(equation: Equation, path: str, name: str) -> Fold:
    operands = [_elements(var) for var in equation.invars]
    outputs = [_elements(var) for var in equation.outvars]
    work = max([*operands, *outputs], default=0)
    nanoseconds = _NANOSECONDS.get(name, _OTHER_NANOSECONDS)
    if name in ("sort", "top_k"):
        nanoseconds *= math.log2(max(work, 2))
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        work = max(outputs, default=0) * math.prod(shape[axis] for axis in contracted)
        nanoseconds = 5.0
    seconds = work * nanoseconds * 1e-9
    size = sum(avals.size(var.aval) for var in equation.outvars)
    return Fold(path, name, max(outputs, default=0), size, seconds, seconds >= TRAP)


def _elements(var: Var) -> int:
    shape = getattr(getattr(var, "aval", None), "shape", ())
    return math.prod(size for size in shape if isinstance(size, int))
