"""Estimate the time of transfers between the host and the device; never measurements.

A transfer takes at least as long as its bytes take at the rate of the link (`chips/links.py`),
which drivers do not quite reach. Both directions work at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable

from jaxsight.targets.chips.links import HOST_LINKS, HostLink
from jaxsight.targets.target import Target
from jaxsight.wire.host_transfers import TO_DEVICE, TO_HOST, WITHIN_HOST, HostTransfer
from jaxsight.wire.kernel_graph import Graph


def link(target: Target) -> HostLink | None:
    """Return the link between a target's device and its host, or `None` if it is not known."""
    return HOST_LINKS.get(target.chip.name) if target.chip is not None else None


def least_seconds(transfer: HostTransfer, target: Target) -> float | None:
    """Return the least seconds of all executions of a transfer, or `None` if unknown."""
    connection = link(target)
    if connection is None or transfer.direction == WITHIN_HOST:
        return None
    return transfer.runs * transfer.bytes / connection.bandwidth


def waited_for(graph: Graph, target: Target) -> float:
    """Return the least seconds in which no kernel runs, as transfers are not overlapped."""
    return _sum((each for each in graph.host_transfers if not each.is_async), target)


def occupied(graph: Graph, target: Target) -> float:
    """Return the least seconds that a program takes, as its transfers take so long."""
    return max(
        _sum((each for each in graph.host_transfers if each.direction == direction), target)
        for direction in (TO_HOST, TO_DEVICE)
    )


def _sum(transfers: Iterable[HostTransfer], target: Target) -> float:
    """Return the seconds of transfers, without those in loops of unknown length."""
    times = (least_seconds(each, target) for each in transfers if each.at_least or not each.runs)
    return sum(time for time in times if time is not None)
