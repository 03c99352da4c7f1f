"""Estimate the time of collectives from the links between devices; never measurements.

The data that each device has to send is that of rings (nccl-tests, `doc/PERFORMANCE.md`, the
factors of its bus bandwidth): of n devices, `2 (n - 1) / n` of the bytes for an all-reduce,
`(n - 1) / n` for an all-gather, a reduce-scatter and an all-to-all, all of them for a permutation.
It is sent at the rate of all links of a device: latency is left out, and on TPUs so is that a
mesh axis may use the links of one dimension alone ("How to Scale Your Model",
jax-ml.github.io/scaling-book, "Sharded Matrices").
Switches that add (NVLink SHARP) can be faster for an all-reduce.

Devices are in the order of the program, as many in a row as are connected (8 for an HGX board).
Groups that span more have no estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jaxsight.targets.chips.links import HOST_LINKS, LINKS, HostLink
from jaxsight.targets.target import Target
from jaxsight.wire.kernel_graph import Collective, Graph, Kernel
from jaxsight.wire.kernel_work import TO_DEVICE, TO_HOST, WITHIN_HOST, HostTransfer

_WITHIN = frozenset({"all-gather", "reduce-scatter", "all-to-all"})
_ONCE = frozenset({"collective-permute", "collective-broadcast", "send"})


@dataclass(frozen=True, slots=True)
class Communication:
    """Seconds that the collectives of a program take on the links of a device."""

    seconds: float
    """Of all collectives."""
    overlapped: float
    """Of those beside which other kernels run; not all of that time need be hidden."""
    is_lower_bound: bool
    """Whether some collectives have no estimate."""


def communication(graph: Graph, target: Target) -> Communication | None:
    """Return the time of a program's collectives, or `None` if there is no estimate for any.

    Loops of unknown length count with no iteration.
    """
    kernels = [kernel for kernel in graph.kernels if kernel.collective is not None]
    times = [
        (kernel, seconds(kernel, target) if kernel.at_least or not kernel.launches else 0.0)
        for kernel in kernels
    ]
    known = [(kernel, time) for kernel, time in times if time is not None]
    if kernels and not known:
        return None
    return Communication(
        sum(time for _, time in known),
        sum(time for kernel, time in known if kernel.collective and kernel.collective.is_async),
        len(known) < len(kernels) or not graph.trips_known,
    )


def seconds(kernel: Kernel, target: Target) -> float | None:
    """Return the seconds of all executions of a collective, or `None` if unknown."""
    collective = kernel.collective
    links = LINKS.get(target.chip.name) if target.chip is not None else None
    if collective is None or links is None or not collective.groups:
        return None
    sent = _sent(collective)
    domains = [{device // max(links.domain, 1) for device in group} for group in collective.groups]
    if sent is None or (links.domain and any(len(each) != 1 for each in domains)):
        return None
    rate = links.rate(target.topology)
    if sent and not rate:
        return None
    return kernel.runs * sent / rate if sent else 0.0


def _sent(collective: Collective) -> float | None:
    """Return the bytes that a device has to send, or `None` if unknown."""
    count = collective.group_size
    if collective.kind in _ONCE:
        moves = any(len(set(group)) > 1 for group in collective.groups)
        return float(collective.bytes) if moves else 0.0
    if collective.kind == "recv":
        return 0.0  # Its time is that of the send.
    share = (count - 1) / count
    if collective.kind == "all-reduce":
        return 2 * share * collective.bytes
    return share * collective.bytes if collective.kind in _WITHIN else None


# Estimate the time of transfers between the host and the device; never measurements.
#
# A transfer takes at least as long as its bytes take at the rate of the link (`chips/links.py`),
# which drivers do not quite reach. Both directions work at the same time.


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
