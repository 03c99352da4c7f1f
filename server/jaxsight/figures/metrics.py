"""The figures that contracts and tests limit, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxsight.figures.figures import AnyFigures
from jaxsight.text import units
from jaxsight.wire.kernel_graph import Collective, CollectiveKind, Graph, Kernel

COLLECTIVES: Mapping[str, CollectiveKind] = {
    "all-reduces": "all-reduce",
    "all-gathers": "all-gather",
    "reduce-scatters": "reduce-scatter",
    "all-to-alls": "all-to-all",
    "collective-permutes": "collective-permute",
}
"""The metrics that count collectives of one kind, with the name of the kind in HLO."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure of a compiled program, which is a range if runtime values or the device decide."""

    most: int
    """-1 if unknown."""
    least: int
    unknown_because: str = ""
    note: str = ""
    """Why it is a range, if the device decides."""


_UNKNOWN = Metric(-1, -1, "the program has a loop of unknown length")


def metric_of(figures: AnyFigures, name: str) -> Metric:
    """Return the figure of a metric; amounts are in bytes, on one device."""
    graph = figures.graph
    match name:
        case "kernels":
            return Metric(graph.kernel_count, graph.kernel_count)
        case "launches":
            return _launches(graph)
        case "temp":
            return _temporaries(figures)
        case "folded":
            return Metric(graph.folded_bytes, graph.folded_bytes)
        case "moved":
            known = Metric(graph.moved_bytes, graph.moved_at_least)
            return known if graph.moved_known else _UNKNOWN
        case "host-transfers":
            return Metric(len(graph.offloads), len(graph.offloads))
        case "host-moved":
            transfers = graph.offloads
            known = Metric(graph.host_bytes(transfers), graph.host_bytes_at_least(transfers))
            return known if graph.host_bytes_known else _UNKNOWN
    number = len(collectives_of(graph, name))
    return Metric(number, number)


def _launches(graph: Graph) -> Metric:
    if not graph.trips_known:
        return _UNKNOWN
    if libraries := graph.libraries:
        why = f"a call of {libraries[0].title} launches an unknown number of kernels"
        return Metric(-1, graph.launches_at_least, why)
    return Metric(graph.launch_count, graph.launches_at_least)


def _temporaries(figures: AnyFigures) -> Metric:
    most, least = figures.compiled.temporaries_at_most, figures.compiled.temporaries
    if least < 0:
        return Metric(-1, -1, "the compiler reports no memory")
    if most < 0:
        return Metric(-1, least, "cuDNN chooses its workspace on the device")
    more = f"up to {units.size(most - least)} of it depends on the device" if most > least else ""
    return Metric(most, least, note=more)


def collectives_of(graph: Graph, name: str) -> list[tuple[Kernel, Collective]]:
    """Return the collectives that a metric is about, each with its kernel."""
    kind = COLLECTIVES.get(name)
    return [
        (kernel, collective)
        for kernel in graph.collectives
        if (collective := kernel.collective) and kind in (None, collective.kind)
    ]
