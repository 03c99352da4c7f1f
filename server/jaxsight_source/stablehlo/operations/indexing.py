"""Gather, scatter and sort."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.compat.lowered.mlir import dialect, ir
from jaxsight_source.stablehlo.evaluation import Array, OperationStep, Results, reads
from jaxsight_source.stablehlo.operations.regions import owner_of
from jaxsight_source.stablehlo.program import UnreadableProgram

_SCATTERS = {
    "stablehlo.add": lax.scatter_add, "stablehlo.subtract": lax.scatter_sub,
    "stablehlo.multiply": lax.scatter_mul, "stablehlo.minimum": lax.scatter_min,
    "stablehlo.maximum": lax.scatter_max,
}  # fmt: skip


_GATHERED = (
    "offset_dims", "collapsed_slice_dims", "start_index_map", "operand_batching_dims",
    "start_indices_batching_dims",
)  # fmt: skip
_SCATTERED = (
    "update_window_dims", "inserted_window_dims", "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims=scattered_dims_to_operand_dims",
    "operand_batching_dims=input_batching_dims",
)  # fmt: skip
"""The dimension numbers of JAX, with their names in StableHLO where these are others."""


def _dimensions(numbers: object, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    pairs = (name.partition("=") for name in names)
    return {ours: tuple(getattr(numbers, theirs or ours)) for ours, _, theirs in pairs}


def _index_vectors(indices: Array, dimension: int) -> Array:
    """Return indices with the dimension of index vectors last, as JAX has it."""
    if dimension == indices.ndim:
        return lax.reshape(indices, (*indices.shape, 1))
    order = [axis for axis in range(indices.ndim) if axis != dimension]
    return indices if dimension == indices.ndim - 1 else lax.transpose(indices, (*order, dimension))


@reads("stablehlo.gather")
def gather(step: OperationStep) -> Array:
    numbers = dialect.GatherDimensionNumbers(step.attribute("dimension_numbers"))
    x, indices = step.operands
    return lax.gather(
        x,
        _index_vectors(indices, numbers.index_vector_dim),
        lax.GatherDimensionNumbers(**_dimensions(numbers, _GATHERED)),
        step.integers("slice_sizes"),
        indices_are_sorted=step.flag("indices_are_sorted"),
        mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,  # lowers to this operation alone
    )


@reads("stablehlo.scatter")
def scatter(step: OperationStep) -> Results:
    if len(step.operands) > 3:
        raise UnreadableProgram("expected one operand, as in JAX")
    x, indices, updates = step.operands
    told = dialect.ScatterDimensionNumbers(step.attribute("scatter_dimension_numbers"))
    numbers = lax.ScatterDimensionNumbers(**_dimensions(told, _SCATTERED))
    indices = _index_vectors(indices, told.index_vector_dim)
    options: dict[str, Any] = {
        "indices_are_sorted": step.flag("indices_are_sorted"),
        "unique_indices": step.flag("unique_indices"),
        "mode": lax.GatherScatterMode.FILL_OR_DROP,  # what the operation does out of bounds
    }
    if [*step.block(0).arguments[1].uses]:
        return _updating(step.block(0))(x, indices, updates, numbers, **options)
    run, zero = step.region(0), np.zeros((), x.dtype)
    return lax.scatter_apply(
        x,
        indices,
        lambda value: run(value, zero)[0],
        numbers,
        update_shape=updates.shape,
        **options,
    )


def _updating(block: ir.Block) -> Callable[..., Array]:
    """Return the scatter whose region this is."""
    element, update = block.arguments
    (returned,) = [*block.operations][-1].operation.operands
    if returned == update:
        return lax.scatter
    owner = owner_of(returned)
    if owner is not None and owner.name in _SCATTERS:
        operands, is_ordered = [*owner.operands], owner.name == "stablehlo.subtract"
        if operands == [element, update] or (operands == [update, element] and not is_ordered):
            return _SCATTERS[owner.name]
    raise UnreadableProgram("expected add, sub, mul, min, max or a function of the element")


@reads("stablehlo.sort")
def sort(step: OperationStep) -> Results:
    keys = keys_of(step.region(0), [operand.dtype for operand in step.operands])
    computed = [key.array(step.operands[key.operand]) for key in keys]
    is_first = [key.is_plain and key.operand == place for place, key in enumerate(keys)]
    operands = step.operands if all(is_first) else (*computed, *step.operands)
    found = lax.sort(
        operands,
        dimension=step.integer("dimension"),
        is_stable=step.flag("is_stable"),
        num_keys=len(keys),
    )
    return found[-len(step.operands) :]


Kind = Literal["partial", "canonical", "total"]
"""An order of floats: without NaN, with all zeros and all NaN equal (as in `lax.sort`), or by sign.
All are the same for integers."""

_PAIRS = 4096
"""Pairs of probes: half of the elements are equal, so that some pairs agree in seven keys."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key of a sort: the operand that is compared, in which order."""

    operand: int
    kind: Kind
    descending: bool

    @property
    def is_plain(self) -> bool:
        """Whether `lax.sort` of the operand has the key's order."""
        return self.kind != "total" and not self.descending

    def array(self, x: Array) -> Array:
        """Return an array whose ascending order is the key's."""
        if self.is_plain:
            return x
        if self.kind == "partial" and jnp.issubdtype(x.dtype, jnp.inexact):
            return -x
        return ~_as_integers(x, self.kind) if self.descending else _as_integers(x, self.kind)


def keys_of(
    comparator: Callable[..., Sequence[Array]], dtypes: Sequence[np.dtype]
) -> list[SortKey]:
    """Return the keys of a comparator, the most significant first.

    Args:
        comparator: takes two elements of each operand.
        dtypes: those of the operands.

    Raises:
        UnreadableProgram: it is not known to be an order of keys.
    """
    with jax.ensure_compile_time_eval():
        pairs = _pairs(dtypes)
        compared = jax.jit(jax.vmap(comparator))(*itertools.chain.from_iterable(pairs))
        is_less = np.asarray(compared[0])
        found: list[SortKey] = []
        rest = np.ones(_PAIRS, bool)
        """The pairs that no key so far tells apart."""
        while is_less[rest].any():
            for key in _candidates(dtypes):
                less, greater, unordered = _compared(key, *pairs[key.operand])
                known = rest & ~unordered
                if less[known].any() and not (is_less != less)[known & (less | greater)].any():
                    break
            else:
                raise UnreadableProgram("expected a comparator that orders by keys")
            found.append(key)
            rest = known & ~less & ~greater
    if not found:
        raise UnreadableProgram("expected a comparator that orders by keys")
    return found


def _candidates(dtypes: Sequence[np.dtype]) -> list[SortKey]:
    kinds: tuple[Kind, ...] = ("canonical", "partial", "total")
    return [
        SortKey(operand, kind, descending)
        for operand in range(len(dtypes))
        for kind in kinds
        for descending in (False, True)
    ]


def _pairs(dtypes: Sequence[np.dtype]) -> list[tuple[Array, Array]]:
    """Return pairs of elements of each operand."""
    random = np.random.default_rng(0)
    pairs = []
    for dtype in dtypes:
        probes = _probes(dtype)
        left, other = random.integers(len(probes), size=(2, _PAIRS))
        right = np.where(random.random(_PAIRS) < 0.5, left, other)
        pairs.append((probes[left], probes[right]))
    return pairs


def _probes(dtype: np.dtype) -> Array:
    """Return numbers of all magnitudes, some of them close to each other."""
    if dtype == bool:
        return jnp.array([False, True])
    if jnp.issubdtype(dtype, jnp.complexfloating):
        parts = [-1.5, -0.0, 0.0, 1.0, np.nan]
        return jnp.array([complex(*pair) for pair in itertools.product(parts, parts)], dtype)
    if jnp.issubdtype(dtype, jnp.integer):
        limits = jnp.iinfo(dtype)
        numbers = [limits.min, limits.min // 2, -2, -1, 0, 1, 2, limits.max // 2, limits.max]
        return jnp.array([one for one in numbers if one >= limits.min], dtype)
    # XLA may compare the elements as numbers of 16 bits, which have all of these.
    positive = np.array([0, 2**-14, 0.25, 1, 1 + 2**-7, 1.5, 2**14, 2**15, np.inf, np.nan])
    return jnp.asarray(np.concatenate([positive, -positive]).astype(dtype))


def _compared(key: SortKey, left: Array, right: Array) -> tuple[np.ndarray, ...]:
    """Return which pairs a key orders, which the other way round, and of which it says nothing."""
    less, greater = _ordered(left, right, key.kind)
    if key.descending:
        less, greater = greater, less
    has_nan = jnp.isnan(left) | jnp.isnan(right)
    unordered = has_nan if key.kind == "partial" else jnp.zeros_like(has_nan)
    return np.asarray(less), np.asarray(greater), np.asarray(unordered)


def _ordered(left: Array, right: Array, kind: Kind) -> tuple[Array, Array]:
    """Return where one array is less than another, and where it is greater."""
    if jnp.iscomplexobj(left):
        less, greater = _ordered(left.real, right.real, kind)
        then_less, then_greater = _ordered(left.imag, right.imag, kind)
        return less | (~greater & then_less), greater | (~less & then_greater)
    one, other = _as_integers(left, kind), _as_integers(right, kind)
    return one < other, one > other


def _as_integers(x: Array, kind: Kind) -> Array:
    """Return integers in an order of floats; other numbers as they are."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    if kind != "total":
        x = jnp.where(jnp.isnan(x), jnp.nan, jnp.where(x == 0, 0, x))
    integers = jnp.dtype(f"int{8 * x.dtype.itemsize}")
    bits = lax.bitcast_convert_type(x, integers)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(integers).max, bits)
