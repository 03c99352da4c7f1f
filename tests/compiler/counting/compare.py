"""Holds the product's graph against the other counts; gives the differences in words."""

from __future__ import annotations

from collections import Counter

from jaxsight.compiler.hlo import read
from jaxsight.wire.kernel_graph import Graph
from tests.compiler.counting import hlo, thunks

COPYING = "sort"
"""Instructions that a CPU's profile shows once more for each operand that they copied first."""


def with_own_count(text: str, graph: Graph, platform: str) -> list[str]:
    """Compare kernels, launches and bytes of one launch, instruction by instruction."""
    counted = hlo.count(text)
    problems = []
    if len(graph.kernels) < len(counted.launches):
        problems.append(f"{len(graph.kernels)} kernels, own count {len(counted.launches)}")
    launches: Counter[str] = Counter()
    least: Counter[str] = Counter()
    for kernel in graph.kernels:
        launches[kernel.name] += kernel.launches
        least[kernel.name] += kernel.at_least
        moved = kernel.bytes_in, kernel.bytes_out
        if moved != counted.moved.get(kernel.name):
            problems.append(f"{kernel.name} moves {moved}, not {counted.moved.get(kernel.name)}")
    for name, (most, fewest) in counted.launches.items():
        if platform == "cpu" and (launches[name], least[name]) != (most, fewest):
            problems.append(f"{name}: {least[name]}–{launches[name]} launches, not {fewest}–{most}")
    shown = graph.launches_at_least, graph.launch_count
    if platform == "cpu" and shown != (counted.fewest, counted.most):
        problems.append(f"{shown} launches in all, not {counted.fewest, counted.most}")
    if graph.trips_known != counted.known:
        problems.append("trips_known differs")
    return problems


def with_profile(text: str, graph: Graph, profile: Counter[str]) -> list[str]:
    """Compare with what a CPU ran: exactly where nothing depends on values, else within bounds."""
    holding = hlo.count(text).holding
    counted = Counter({kernel.name: 0 for kernel in graph.kernels})
    for kernel in graph.kernels:
        counted[kernel.name] += kernel.launches
    ran: Counter[str] = Counter()
    for name, times in profile.items():
        if name in holding:
            continue
        copied = name.startswith(COPYING) and counted[name] and times % counted[name] == 0
        ran[name] = counted[name] if copied else times
    total = ran.total()
    if not graph.trips_known:
        if total < graph.launches_at_least:
            return [f"{total} launches ran, at least {graph.launches_at_least} shown"]
        return []
    if graph.branches:
        if not graph.launches_at_least <= total <= graph.launch_count:
            shown = f"{graph.launches_at_least}–{graph.launch_count}"
            return [f"{total} launches ran, {shown} shown: {dict(ran)}"]
        return []
    return [
        f"{name} ran {ran[name]} times, {counted[name]} shown"
        for name in counted | ran
        if ran[name] != counted[name]
    ]


def with_thunks(text: str, sequence: str, platform: str) -> list[str]:
    """Compare with the thunks that XLA made of the module for a GPU."""
    graph = read(text, platform=platform)
    problems = with_own_count(text, graph, platform)
    trips = hlo.count(text).trips
    launched = thunks.launched(thunks.parse(sequence), trips)
    sorting = any(
        "sort" in kernel.kind or kernel.name.startswith("fusion") for kernel in graph.kernels
    )
    if len(graph.kernels) != launched.compiled and not sorting:
        problems.append(f"{len(graph.kernels)} kernels, XLA {launched.compiled}")
    if not graph.launches_at_least <= launched.fewest:
        problems.append(f"at least {graph.launches_at_least} launches, XLA {launched.fewest}")
    exact = all(k.launches == k.at_least for k in graph.kernels) or not graph.trips_known
    if launched.most > graph.launch_count or (exact and launched.most != graph.launch_count):
        problems.append(f"at most {graph.launch_count} launches, XLA {launched.most}")
    return problems
