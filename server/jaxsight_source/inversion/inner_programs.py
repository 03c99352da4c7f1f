"""Networks of inner programs: which of their values are known, and why they are not solved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import jax

from jaxsight_source.inversion.network import Blocked, Network, Node

Values: TypeAlias = Sequence[jax.Array]


def known_positions(network: Network, nodes: Sequence[Node]) -> list[int]:
    return [index for index, node in enumerate(nodes) if network.knows(node)]


def index_values(network: Network, nodes: Sequence[Node]) -> dict[int, jax.Array]:
    """Return the known values, by position, of the nodes that may be indices."""
    values = {
        index: network.constant(node)
        for index, node in enumerate(nodes)
        if node.aval.dtype in _INDICES and math.prod(node.aval.shape) <= _MOST_INDICES
    }
    return {index: value for index, value in values.items() if value is not None}


_INDICES = ("bool", "int32", "int64", "uint32", "uint64")
_MOST_INDICES = 1 << 20
"""Elements of an array whose values are computed, as they may be indices: chosen, 4 MiB."""


def by_node(
    nodes: Sequence[Node], positions: Sequence[int], values: Values
) -> dict[Node, jax.Array]:
    return {nodes[index]: value for index, value in zip(positions, values, strict=True)}


def culprit(networks: Sequence[Network], otherwise: str) -> Blocked:
    """Return the reason of the innermost equation to blame, or `otherwise` if there is none."""
    for network in networks:
        for placed, why in network.blocked():
            return Blocked(why.reason, why.culprit or placed)
    return Blocked(otherwise)
