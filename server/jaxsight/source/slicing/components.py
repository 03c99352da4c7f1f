"""Strongly connected components of a graph.

The algorithm does not recurse, because a module may chain thousands of statements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


def components(roots: Iterable[T], edges: Callable[[T], Iterable[T]]) -> Iterator[Sequence[T]]:
    """Yield the components reachable from `roots`, dependencies first (Tarjan's algorithm).

    A component comes after all components that it has edges to.
    """
    order: dict[T, int] = {}
    low: dict[T, int] = {}
    open_nodes: list[T] = []
    is_open: set[T] = set()
    for root in roots:
        if root in order:
            continue
        walk: list[tuple[T, Iterator[T]]] = []
        entering: T | None = root
        while entering is not None or walk:
            if entering is not None:
                order[entering] = low[entering] = len(order)
                open_nodes.append(entering)
                is_open.add(entering)
                walk.append((entering, iter(edges(entering))))
                entering = None
            node, successors = walk[-1]
            for successor in successors:
                if successor not in order:
                    entering = successor
                    break
                if successor in is_open:
                    low[node] = min(low[node], order[successor])
            if entering is not None:
                continue
            walk.pop()
            if walk:
                above = walk[-1][0]
                low[above] = min(low[above], low[node])
            if low[node] == order[node]:
                component = [open_nodes.pop()]
                while component[-1] != node:
                    component.append(open_nodes.pop())
                is_open.difference_update(component)
                yield component
