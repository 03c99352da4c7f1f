"""Find the equations of kernels that compute none: copies, pads, changes of layout.

XLA inserts these kernels without a name from the program (copies of loop carries in
`copy_insertion.cc`, transposes in `layout_assignment.cc`), so they are attributed to the readers of
their results.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.compiler.hlo.flow import Flow
from jaxsight.compiler.hlo.walk import Unit
from jaxsight.wire.kernel_graph import KERNEL, Branch, Loop


def feeds(
    units: Sequence[Unit],
    equations: Sequence[tuple[str, ...]],
    ends_at: Sequence[str],
    loops: Sequence[Loop],
    branches: Sequence[Branch],
    flow: Flow,
) -> list[tuple[str, ...]]:
    """Return the equations that each kernel feeds, none for a kernel that computes some itself.

    They are tried in this order: the loop that carries its results, the kernels that read them, the
    conditional or the loop around it, the kernels whose results it copies.
    """
    readers: dict[int, list[int]] = {}
    sources: dict[int, list[int]] = {}
    for source, kernel, _ in flow.reads:
        if source.what == KERNEL and source.index != kernel:
            readers.setdefault(source.index, []).append(kernel)
            sources.setdefault(kernel, []).append(source.index)

    def nearest(start: int, neighbours: dict[int, list[int]]) -> list[str]:
        """Return the equations of the nearest kernels that compute some."""
        paths: dict[str, None] = {}
        visited = {start}
        waiting = list(neighbours.get(start, ()))
        while waiting:
            kernel = waiting.pop(0)
            if kernel in visited:
                continue
            visited.add(kernel)
            if equations[kernel]:
                own = ends_at[kernel] in equations[kernel]
                paths[ends_at[kernel] if own else equations[kernel][-1]] = None
            else:
                waiting += neighbours.get(kernel, ())
        return list(paths)

    def fed(index: int) -> tuple[str, ...]:
        unit = units[index]
        carrying = [loops[loop].equation for loop in sorted(flow.feeds_loop.get(index, ()))]
        around = [branches[unit.branch].equation] if unit.branch >= 0 else []
        around += [loops[loop].equation for loop in reversed(unit.loops)]
        for paths in (
            [path for path in carrying if path],
            nearest(index, readers),
            [path for path in around if path][:1],
            nearest(index, sources),
        ):
            if paths:
                return tuple(dict.fromkeys(paths))
        return ()

    return [() if equations[index] else fed(index) for index in range(len(units))]
