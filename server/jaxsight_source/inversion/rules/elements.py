"""Splits equations that choose among elements, by positions that are known at trace time.

`where` with a known mask, `x.at[indices].set(…)`, a product with a mask of zeros: their results
mix elements of several operands, so knowing the result tells parts of each. Such an equation is
replaced by one whose operands are the parts: elementwise operations on those elements alone, down
to values that have other makers. No unknown element is ever computed with, so nothing is NaN that
the inverse then hides.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.compat.equations import bind, made_by
from jaxsight_source.compat.staging import stage
from jaxsight_source.inversion.network import Network, Node, Placed, Solution
from jaxsight_source.inversion.rules.composites import elementwise_function

_LARGEST = 1 << 20
"""Elements of an array whose positions are tracked: chosen, 4 MiB of int32."""
_LONGEST = 500
"""Equations through which elements are followed at once: chosen, so that recursion is no risk."""

_ELEMENTWISE = frozenset([
    "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atanh", "cbrt",
    "ceil", "clamp", "convert_element_type", "copy", "cos", "cosh", "div", "eq", "erf", "erf_inv",
    "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "integer_pow", "is_finite", "le", "log",
    "log1p", "logistic", "lt", "max", "min", "mul", "ne", "neg", "not", "or", "pow", "rem",
    "round", "rsqrt", "select_n", "sign", "sin", "sinh", "sqrt", "square", "stop_gradient", "sub",
    "tan", "tanh", "xor",
])  # fmt: skip
"""Primitives that compute each element of their result from one element of each operand."""

_MOVES: Mapping[str, int] = {
    "broadcast_in_dim": 1,
    "concatenate": -1,
    "copy": 1,
    "dynamic_slice": 1,
    "dynamic_update_slice": 2,
    "expand_dims": 1,
    "gather": 1,
    "pad": 2,
    "reshape": 1,
    "rev": 1,
    "slice": 1,
    "squeeze": 1,
    "transpose": 1,
}
"""Primitives whose result consists of elements of their first operands: how many; -1 for all.

The operands that follow are indices. `select_n` and `scatter` have their indices before or between.
"""

_Values: TypeAlias = Mapping[Node, jax.Array]
_Expression: TypeAlias = Callable[[_Values], jax.Array]
"""Computes a vector of elements from the values of the nodes at which `_Pull` stops."""


def split(network: Network) -> bool:
    """Replace the equations that choose among elements, and solve those that read known parts.

    Return whether anything changed.
    """
    changed = False
    for placed in network.pending():
        if _is_split(placed, network):
            pull = _Pull(network)
            (output,) = placed.outputs
            positions = np.arange(math.prod(output.aval.shape), dtype=np.int32)
            expression = pull.made(placed, positions)
            if expression is not None:
                _exchange(network, placed, pull.stops, expression)
                changed = True
    return _covered(network) or changed


def _is_split(placed: Placed, network: Network) -> bool:
    if (
        placed.joins
        or placed in network.exchanged
        or len(placed.outputs) != 1
        or not placed.outputs[0].aval.shape
    ):
        return False
    if max(math.prod(n.aval.shape) for n in (*placed.inputs, *placed.outputs)) > _LARGEST:
        return False
    match placed.name:
        case "select_n" | "scatter" | "scatter-add" | "dynamic_update_slice" | "gather" | "slice":
            return _sources(placed, network) is not None
        case "mul" | "add" | "sub":
            return any(_zeros(node, network).any() for node in placed.inputs)
        case _:
            return False


def _exchange(
    network: Network, placed: Placed, stops: Sequence[Node], expression: _Expression
) -> None:
    (output,) = placed.outputs

    def function(*values: jax.Array) -> jax.Array:
        vector = expression(dict(zip(stops, values, strict=True)))
        return lax.reshape(vector, output.aval.shape)

    with made_by(placed.equation):
        staged = stage(function, [node.aval for node in stops])
    network.exchange(placed, staged.program, stops)


@dataclass(slots=True)
class _Pull:
    """Follows elements of a result back through the equations that make it."""

    network: Network
    stops: list[Node] = field(default_factory=list)
    _visited: int = 0

    def of(self, node: Node, positions: np.ndarray) -> _Expression:
        """Return an expression for the elements of a node at positions in row-major order."""
        maker = self.network.maker(node)
        self._visited += 1
        if maker is not None and not self.network.knows(node) and self._visited < _LONGEST:
            expression = self.made(maker, positions)
            if expression is not None:
                return expression
        if node not in self.stops:
            self.stops.append(node)
        if _is_all(positions, node):
            return lambda values: lax.reshape(values[node], (positions.size,))
        return lambda values: _taken(
            lax.reshape(values[node], (math.prod(node.aval.shape),)), positions
        )

    def made(self, placed: Placed, positions: np.ndarray) -> _Expression | None:
        """Return an expression for elements of an equation's result; None if it cannot tell."""
        if placed.joins:
            return self.of(placed.inputs[0], positions)
        if placed.name == "scatter-add":
            return self._added(placed, positions)
        moved = _sources(placed, self.network)
        if moved is not None:
            return self._moved(moved, positions)
        if placed.name in ("mul", "add", "sub"):
            return self._with_zeros(placed, positions)
        if placed.name in _ELEMENTWISE:
            return self._elementwise(placed, positions)
        function = elementwise_function(placed) if placed.name == "custom_jvp_call" else None
        if function is not None:
            operands = [self._shaped(node, positions) for node in placed.inputs]
            return lambda values: function(*(operand(values) for operand in operands))
        return None

    def _elementwise(self, placed: Placed, positions: np.ndarray) -> _Expression:
        scalar = not placed.outputs[0].aval.shape
        operands = [
            self._whole(node) if not node.aval.shape and not scalar else self.of(node, positions)
            for node in placed.inputs
        ]
        return lambda values: bind(placed.equation, [operand(values) for operand in operands])[0]

    def _whole(self, node: Node) -> _Expression:
        if node not in self.stops:
            self.stops.append(node)
        return lambda values: values[node]

    def _with_zeros(self, placed: Placed, positions: np.ndarray) -> _Expression:
        """Return a sum without the operands that are 0, and 0 for a product with 0."""
        left, right = (
            _zeros(node, self.network).ravel()[positions] if node.aval.shape
            else np.full(positions.shape, bool(_zeros(node, self.network)))
            for node in placed.inputs
        )  # fmt: skip
        if not left.any() and not right.any():
            return self._elementwise(placed, positions)
        aval, groups = placed.outputs[0].aval, []
        if placed.name == "mul":
            zero = left | right
            constant = np.zeros(int(zero.sum()), aval.dtype)
            groups.append((zero, lambda values: jnp.asarray(constant)))
            groups.append(
                (~zero, self._part(~zero, positions, functools.partial(self._elementwise, placed)))
            )
        else:
            first, second = placed.inputs
            negated = placed.name == "sub"
            only_first, only_second = right, left & ~right
            groups.append(
                (
                    only_first,
                    self._part(only_first, positions, functools.partial(self._shaped, first)),
                )
            )
            second_alone = self._part(
                only_second, positions, functools.partial(self._shaped, second)
            )
            groups.append(
                (
                    only_second,
                    (lambda values: lax.neg(second_alone(values))) if negated else second_alone,
                )
            )
            both = ~left & ~right
            groups.append(
                (both, self._part(both, positions, functools.partial(self._elementwise, placed)))
            )
        return _assembled([(np.flatnonzero(mask), part) for mask, part in groups if mask.any()])

    def _shaped(self, node: Node, positions: np.ndarray) -> _Expression:
        if node.aval.shape:
            return self.of(node, positions)
        whole = self._whole(node)
        return lambda values: jnp.broadcast_to(whole(values), positions.shape)

    def _part(
        self,
        mask: np.ndarray,
        positions: np.ndarray,
        of: Callable[[np.ndarray], _Expression],
    ) -> _Expression:
        return of(positions[mask]) if mask.any() else lambda values: jnp.zeros(0)

    def _moved(self, moved: _Moved, positions: np.ndarray) -> _Expression:
        wanted, parts = moved.sources[positions], []
        for node, start in zip(moved.nodes, moved.starts, strict=True):
            where = np.flatnonzero(
                (wanted >= start) & (wanted < start + math.prod(node.aval.shape))
            )
            if where.size:
                parts.append((where, self.of(node, wanted[where] - start)))
        return _assembled(parts)

    def _added(self, placed: Placed, positions: np.ndarray) -> _Expression | None:
        """Return elements of a sum at unique indices: those of an operand, some with an update."""
        moved = _sources(placed, self.network)
        if moved is None:
            return None
        operand, updates = moved.nodes
        wanted = moved.sources[positions]
        updated = wanted >= moved.starts[1]
        kept, changed = np.flatnonzero(~updated), np.flatnonzero(updated)
        parts = [(kept, self.of(operand, positions[kept]))] if kept.size else []
        if changed.size:
            before = self.of(operand, positions[changed])
            change = self.of(updates, wanted[changed] - moved.starts[1])
            parts.append((changed, lambda values: lax.add(before(values), change(values))))
        return _assembled(parts)


def _assembled(parts: Sequence[tuple[np.ndarray, _Expression]]) -> _Expression:
    """Return the vector that has the elements of each part at its positions."""
    order = np.argsort(np.concatenate([where for where, _ in parts]))
    if len(parts) == 1:
        return parts[0][1]
    return lambda values: _taken(
        lax.concatenate([part(values) for _, part in parts], 0), order.astype(np.int32)
    )


def _is_all(positions: np.ndarray, node: Node) -> bool:
    return positions.size == math.prod(node.aval.shape) and bool(
        (positions == np.arange(positions.size)).all()
    )


def _taken(vector: jax.Array, positions: np.ndarray) -> jax.Array:
    """Return elements of a vector as one `gather`, with positions that are a constant."""
    dimensions = lax.GatherDimensionNumbers((), (0,), (0,))
    return lax.gather(vector, positions[:, None], dimensions, (1,), mode="clip")


@dataclass(frozen=True, slots=True)
class _Moved:
    """Where each element of a result comes from.

    The elements of `nodes` are numbered from `starts`; `sources` has a number for each element.
    """

    nodes: Sequence[Node]
    starts: Sequence[int]
    sources: np.ndarray


def _sources(placed: Placed, network: Network) -> _Moved | None:
    """Return where the elements of an equation's only result come from.

    Return None if it computes, or chooses by values that are unknown at trace time.
    """
    match placed.name:
        case "select_n":
            data = list(range(1, len(placed.inputs)))
        case "scatter" | "scatter-add":
            data = [0, 2]
        case _:
            count = _MOVES.get(placed.name)
            if count is None:
                return None
            data = list(range(len(placed.inputs) if count < 0 else count))
    if len(placed.outputs) != 1:
        return None
    sizes = [math.prod(placed.inputs[index].aval.shape) for index in data]
    starts = [0, *map(int, np.cumsum(sizes)[:-1])]
    if sum(sizes) > _LARGEST or math.prod(placed.outputs[0].aval.shape) > _LARGEST:
        return None
    params = dict(placed.params)
    if "fill_value" in params:
        params["fill_value"] = -1
    operands: list[jax.Array] = []
    with jax.ensure_compile_time_eval():
        for index, node in enumerate(placed.inputs):
            if index in data:
                at = data.index(index)
                numbers = np.arange(sizes[at], dtype=np.int32) + starts[at]
                operands.append(jnp.asarray(numbers.reshape(node.aval.shape)))
            else:
                value = network.constant(node)
                if value is None:
                    return None
                operands.append(jnp.asarray(value))
        if placed.name == "scatter-add":
            if not _are_unique(placed, operands):
                return None
            sources = lax.scatter(
                operands[0],
                operands[1],
                operands[2],
                params["dimension_numbers"],
                mode=params["mode"],
            )
        else:
            sources = placed.equation.primitive.bind(*operands, **params)
    numbers = np.asarray(sources).ravel()
    if (numbers < 0).any():
        return None
    return _Moved([placed.inputs[index] for index in data], starts, numbers)


def _are_unique(placed: Placed, operands: Sequence[jax.Array]) -> bool:
    """Return whether a `scatter-add` adds at most one update to each element."""
    counts = lax.scatter_add(
        jnp.zeros(np.shape(operands[0]), np.int32),
        operands[1],
        jnp.ones(np.shape(operands[2]), np.int32),
        placed.params["dimension_numbers"],
        mode=placed.params["mode"],
    )
    return bool((counts <= 1).all())


def _zeros(node: Node, network: Network) -> np.ndarray:
    """Return which elements of a node are 0 whatever the unknown values are."""
    shape = node.aval.shape
    none = np.zeros(shape, bool)
    if math.prod(shape) > _LARGEST or not jnp.issubdtype(node.aval.dtype, np.inexact):
        return none
    value = network.constant(node)
    if value is not None:
        return np.asarray(np.equal(np.asarray(value), 0))
    maker = network.maker(node)
    if maker is None or network.knows(node):
        return none
    if maker.joins:
        return _zeros(maker.inputs[0], network)
    if maker.name == "mul":
        for operand in maker.inputs:
            known = network.constant(operand)
            if known is not None:
                return np.broadcast_to(np.equal(np.asarray(known), 0), shape)
    moved = _sources(maker, network)
    if moved is None or maker.name == "scatter-add":
        return none
    flat = np.concatenate([_zeros(operand, network).ravel() for operand in moved.nodes])
    return np.asarray(flat[moved.sources]).reshape(shape)


def _covered(network: Network) -> bool:
    """Solve pieces of unknown vectors whose elements are all in other, known pieces."""
    changed = False
    for placed in network.pending():
        if placed.name != "gather" or network.knows(*placed.outputs):
            continue
        positions = network.constant(placed.inputs[1])
        vector = placed.inputs[0]
        if positions is None or placed not in network.exchanged:
            continue
        wanted = np.asarray(positions)[:, 0]
        found = np.full(math.prod(vector.aval.shape), -1, np.int32)
        reads, start = [], 0
        for piece in network.readers(vector):
            if (
                piece.name == "gather"
                and piece in network.exchanged
                and network.knows(*piece.outputs, piece.inputs[1])
            ):
                where = network.constant(piece.inputs[1])
                if where is not None:
                    at = np.asarray(where)[:, 0]
                    found[at] = np.arange(at.size) + start
                    reads.append(piece.outputs[0])
                    start += at.size
        order = found[wanted]
        if (order >= 0).all() and reads:

            def compute(*parts: jax.Array, order: np.ndarray = order) -> list[jax.Array]:
                return [_taken(lax.concatenate(parts, 0), order)]

            network.take(placed, Solution(tuple(reads), placed.outputs, compute))
            changed = True
    return changed
