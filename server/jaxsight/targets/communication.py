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

from dataclasses import dataclass

from jaxsight.targets.chips.links import LINKS
from jaxsight.targets.target import Target
from jaxsight.wire.kernel_graph import Collective, Graph, Kernel

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
