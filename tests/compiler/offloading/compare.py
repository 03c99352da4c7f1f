"""Compare jaxsight's transfers with a count from memory spaces."""

from __future__ import annotations

from collections import Counter

from jaxsight.wire.kernel_graph import Graph
from tests.compiler.offloading import spaces


def with_memory_spaces(text: str, graph: Graph) -> list[str]:
    """Return the differences: transfers that one side misses, and kernels that are transfers.

    HLO for TPUs does not have the iterations of loops, so that executions are not compared there.
    """
    on_tpu = ":T(" in text
    ours: Counter[spaces.Moved] = Counter(
        (each.direction, each.bytes, 1 if on_tpu else each.runs)
        for each in graph.host_transfers
        if each.direction != "within host"
    )
    own = spaces.count(text)
    problems = [f"not found: {each}" for each in own - ours]
    problems += [f"only found by jaxsight: {each}" for each in ours - own]
    lines = text.split("\n")
    known = {transfer.kernel for transfer in graph.host_transfers}
    problems += [
        f"a transfer is a kernel: {kernel.name} ({kernel.ends_because})"
        for index, kernel in enumerate(graph.kernels)
        if "S(5)" in lines[kernel.instruction]
        and (index not in known or kernel.ends_because == "layout change")
        and "HostExecute" not in lines[kernel.instruction]
    ]
    return problems
