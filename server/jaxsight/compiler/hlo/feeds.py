"""Find the equations of kernels that compute none: copies, pads, changes of layout.

XLA inserts these kernels without a name from the program (copies of loop carries in
`copy_insertion.cc`, transposes in `layout_assignment.cc`), so they are attributed to the readers of
their results.
"""

from __future__ import annotations

from collections import deque
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
        if source.what == KERNEL and source.number != kernel:
            readers.setdefault(source.number, []).append(kernel)
            sources.setdefault(kernel, []).append(source.number)
    after = _Nearest(equations, ends_at, readers, sources)
    before = _Nearest(equations, ends_at, sources, readers)

    def fed(index: int) -> tuple[str, ...]:
        unit = units[index]
        carrying = [loops[loop].equation for loop in sorted(flow.feeds_loop.get(index, ()))]
        around = [branches[unit.branch].equation] if unit.branch >= 0 else []
        around += [loops[loop].equation for loop in reversed(unit.loops)]
        for paths in (
            [path for path in carrying if path],
            after.paths(index),
            [path for path in around if path][:1],
            before.paths(index),
        ):
            if paths:
                return tuple(dict.fromkeys(paths))
        return ()

    return [() if equations[index] else fed(index) for index in range(len(units))]


class _Nearest:
    """Finds the nearest kernels that compute equations, past those that compute none."""

    def __init__(
        self,
        equations: Sequence[tuple[str, ...]],
        ends_at: Sequence[str],
        neighbours: dict[int, list[int]],
        backwards: dict[int, list[int]],
    ) -> None:
        self._equations = equations
        self._ends_at = ends_at
        self._neighbours = neighbours
        self._leading: set[int] = set()
        """The kernels from which one that computes an equation is reached; others are not tried,
        as a program may have many that compute none."""
        waiting = [kernel for kernel, paths in enumerate(equations) if paths]
        while waiting:
            for kernel in backwards.get(waiting.pop(), ()):
                if kernel not in self._leading:
                    self._leading.add(kernel)
                    if not equations[kernel]:
                        waiting.append(kernel)

    def paths(self, start: int) -> list[str]:
        """Return the equations of the nearest kernels, one for each."""
        paths: dict[str, None] = {}
        visited = {start}
        waiting = deque(self._neighbours.get(start, ()) if start in self._leading else ())
        while waiting:
            kernel = waiting.popleft()
            if kernel in visited:
                continue
            visited.add(kernel)
            if own := self._equations[kernel]:
                paths[self._ends_at[kernel] if self._ends_at[kernel] in own else own[-1]] = None
            elif kernel in self._leading:
                waiting += self._neighbours.get(kernel, ())
        return list(paths)
