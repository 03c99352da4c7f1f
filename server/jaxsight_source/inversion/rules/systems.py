"""Solves several linear equations at once, where no equation alone determines an operand.

A rotation by coordinates, `a + b` with `a - b`, a reflection, a discrete cosine transform: known
values that are linear in unknown ones, through any number of equations. The matrix of the system is
the Jacobian of these equations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.inversion.network import (
    InverseStep,
    Network,
    Node,
    Placed,
    Plan,
    Solution,
    forwards,
)

_LARGEST = 1024
"""Unknown numbers of a system: chosen, its matrix takes 4 MiB of float32."""

_LINEAR = frozenset([
    "add", "add_any", "broadcast_in_dim", "complex", "concatenate", "conj", "convert_element_type",
    "copy", "cumsum", "expand_dims", "fft", "imag", "neg", "pad", "real", "reduce_sum",
    "reduce_window_sum", "reshape", "rev", "slice", "split", "squeeze", "stack", "sub",
    "transpose", "unstack",
])  # fmt: skip
"""Primitives that are linear in all of their operands together, over the real numbers."""

_ONE_UNKNOWN = frozenset(["mul", "dot_general", "conv_general_dilated"])
_KNOWN = {
    "div": slice(1, None), "dynamic_slice": slice(1, None), "dynamic_update_slice": slice(2, None),
    "gather": slice(1, None), "scatter": slice(1, 2), "scatter-add": slice(1, 2),
    "select_n": slice(1), "triangular_solve": slice(1),
}  # fmt: skip
"""Primitives that are linear if these operands are known."""


def _is_linear(placed: Placed, network: Network) -> bool:
    if placed.joins:
        return True
    if not all(jnp.issubdtype(node.aval.dtype, np.inexact) for node in placed.outputs):
        return False
    if placed.name in _ONE_UNKNOWN:
        return sum(not network.knows(node) for node in placed.inputs) == 1
    known = _KNOWN.get(placed.name)
    if known is not None:
        return network.knows(*placed.inputs[known])
    return placed.name in _LINEAR and all(
        jnp.issubdtype(node.aval.dtype, np.inexact) for node in placed.inputs
    )


@dataclass(slots=True)
class _System:
    """Equations that make the known nodes `results` from the unknown nodes `roots`."""

    roots: list[Node]
    results: list[Node]
    equations: list[Placed]


def solve(network: Network) -> bool:
    """Solve the first system of equations that determines its unknown values."""
    return any(_solve(system, network) for system in _systems(network))


def _systems(network: Network) -> list[_System]:
    """Return the systems that share no unknown values, each as large as it can be."""
    systems: list[_System] = []
    for placed in network.pending():
        if not any(map(network.knows, placed.outputs)) or not _is_linear(placed, network):
            continue
        system = _System([], [node for node in placed.outputs if network.knows(node)], [])
        _extend(system, placed, network)
        apart = []
        for other in systems:
            if set(other.roots).isdisjoint(system.roots):
                apart.append(other)
            else:
                system.roots = list(dict.fromkeys([*other.roots, *system.roots]))
                system.results = list(dict.fromkeys([*other.results, *system.results]))
                system.equations = list(dict.fromkeys([*other.equations, *system.equations]))
        systems = [*apart, system]
    return systems


def _extend(system: _System, placed: Placed, network: Network) -> None:
    """Add the equations that an equation depends on, before it, down to the roots."""
    waiting = [(placed, False)]
    while waiting:
        current, ready = waiting.pop()
        if ready:
            if current not in system.equations:
                system.equations.append(current)
            continue
        waiting.append((current, True))
        for node in current.inputs:
            if network.knows(node):
                continue
            maker = network.maker(node)
            if maker is not None and _is_linear(maker, network):
                if maker not in system.equations:
                    waiting.append((maker, False))
            elif node not in system.roots:
                system.roots.append(node)


def _solve(system: _System, network: Network) -> bool:
    roots, results = system.roots, system.results
    unknown = sum(math.prod(node.aval.shape) for node in roots)
    equations = sum(math.prod(node.aval.shape) for node in results)
    dtypes = {node.aval.dtype for node in (*roots, *results)}
    if max(unknown, equations) > _LARGEST or len(dtypes) > 1:
        return False
    if not all(jnp.issubdtype(node.aval.dtype, np.floating) for node in roots):
        return False
    steps = tuple(
        InverseStep(
            own, own.inputs, own.outputs, frozenset(own.outputs).difference(roots), forwards(own)
        )
        for own in system.equations
    )
    made = {*roots, *(node for step in steps for node in step.fresh)}
    inputs = dict.fromkeys(node for step in steps for node in step.reads)
    reads = tuple(node for node in inputs if node not in made and not node.fixed)
    plan = Plan(steps, frozenset((*roots, *reads)), tuple(results))
    culprit = system.equations[-1]

    def results_of(vector: jax.Array, known: Sequence[jax.Array]) -> jax.Array:
        values, start = dict(zip(reads, known, strict=True)), 0
        for node in roots:
            size = math.prod(node.aval.shape)
            values[node] = vector[start : start + size].reshape(node.aval.shape)
            start += size
        return jnp.concatenate([value.ravel() for value in plan(values)])

    dtype = roots[0].aval.dtype
    zeros = np.zeros(unknown, dtype)
    rank = _rank(lambda *known: jax.jacfwd(results_of)(jnp.asarray(zeros), known), reads, network)
    if rank < unknown:
        if set(roots) <= set(network.inputs) and len(steps) > 1:
            network.refuse(culprit, f"is in a linear map of rank {rank} from {unknown} elements")
        return False

    def compute(*values: jax.Array) -> list[jax.Array]:
        known, found = values[: len(reads)], values[len(reads) :]
        y = jnp.concatenate([value.ravel() for value in found])
        offset = results_of(jnp.asarray(zeros), known)
        matrix = jax.jacfwd(results_of)(jnp.asarray(zeros), known)
        if equations == unknown:
            vector = jnp.linalg.solve(matrix, y - offset)
        else:
            vector = jnp.linalg.lstsq(matrix, y - offset)[0]
        parts = np.cumsum([math.prod(node.aval.shape) for node in roots])[:-1]
        return [
            part.reshape(node.aval.shape)
            for part, node in zip(jnp.split(vector, parts), roots, strict=True)
        ]

    network.take(culprit, Solution((*reads, *results), tuple(roots), compute))
    return True


def _rank(jacobian: Callable[..., jax.Array], reads: Sequence[Node], network: Network) -> int:
    """Return the rank of a system's matrix.

    Values that the matrix depends on and that are unknown at trace time are drawn at random, so the
    rank is that for almost all of them.
    """
    random = np.random.default_rng(0)
    known = [network.constant(node) for node in reads]
    drawn = [
        random.normal(size=node.aval.shape).astype(node.aval.dtype) if value is None else value
        for node, value in zip(reads, known, strict=True)
    ]
    with jax.ensure_compile_time_eval():
        matrix = jacobian(*map(jnp.asarray, drawn))
    return int(np.linalg.matrix_rank(np.asarray(matrix, np.float32)))
