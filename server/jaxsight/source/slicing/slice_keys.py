"""The keys of a slice's chunks: equal keys mean that two executions have the same result.

A chunk's key is computed from its meaning, the keys of its dependencies, the order in which names
were bound before it, and all acting chunks, in order, because those may change anything. Chunks
that depend on each other (functions that call each other; a name that is rebound repeatedly) share
one digest. Positions, comments and docstrings are in no key.

Dependencies are computed once. After an edit that leaves them unchanged, only the keys that depend
on the edit are recomputed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Node = int | str
"""A chunk by its number, or a name, which represents all chunks that bind or change it."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """How the chunks of a slice depend on each other.

    * `reads`: for every chunk, the names of the slice that it uses, sorted.
    * `events`: for every such name, the chunks that bind it, in order.
    * `executing`: chunks that run code of the module; `acting`: chunks that may change anything.
    * `before`: the number of definitions above a chunk of the names that it reads while it is
      executed.
    """

    chunks: tuple[int, ...]
    reads: Mapping[int, Sequence[str]]
    events: Mapping[str, Sequence[int]]
    executing: frozenset[int]
    acting: frozenset[int]
    imports: frozenset[int]
    before: Mapping[int, str]
    future_flags: int


@dataclass(frozen=True, slots=True)
class _Component:
    """Nodes that depend on each other.

    `needs` are the components that the nodes read or bind, in a fixed order.
    """

    chunks: tuple[int, ...]
    needs: tuple[tuple[str, int], ...]
    behind: int
    """A bit set of all chunks that change something and that these nodes depend on."""


class SliceKeys:
    """Computes the keys of one slice repeatedly, as meanings change."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        self._changing = _changing(dependencies.events)
        self._components = self._arrange()
        self._component_of = {
            index: number
            for number, component in enumerate(self._components)
            for index in component.chunks
        }
        self._meanings: dict[int, str] = {}
        self._digests: list[str] = [""] * len(self._components)
        self._keys: dict[int, str] = {}
        self._acted = ""

    def keys(self, meanings: Mapping[int, str]) -> list[str]:
        """Return a key for each chunk, given the digests of their meanings."""
        edited = {i for i, meaning in meanings.items() if self._meanings.get(i) != meaning}
        if edited:
            self._meanings.update(meanings)
            stale = self._digest(edited)
            actions = digest_of(self._actions())
            everything = actions != self._acted
            self._acted = actions
            bits = sum(1 << i for i in edited if i in self._changing)
            for number, component in enumerate(self._components):
                if everything or number in stale or component.behind & bits:
                    self._key(number)
        return [self._keys[i] for i in self._dependencies.chunks]

    def _digest(self, edited: set[int]) -> set[int]:
        """Update the digests of components that contain or depend on an edited chunk.

        Returns the numbers of these components.
        """
        stale: set[int] = set()
        for number, component in enumerate(self._components):
            if any(need in stale for _, need in component.needs) or any(
                i in edited for i in component.chunks
            ):
                stale.add(number)
                self._digests[number] = digest_of(
                    (
                        *(self._meanings[i] for i in component.chunks),
                        *(f"{name}={self._digests[need]}" for name, need in component.needs),
                    )
                )
        return stale

    def _actions(self) -> Iterator[str]:
        """Yield the digests of acting chunks, in order, and of the imports before each.

        An imported module may depend on what ran before its import.
        """
        if self._dependencies.acting:
            # The order of all that runs: a statement that moves may fail, or see another value.
            yield digest_of(
                f"{i}={before}" for i, before in enumerate(self._dependencies.before.values())
            )
        imported: list[str] = []
        for index in self._dependencies.chunks:
            if index in self._dependencies.acting:
                yield digest_of(imported)
                number = self._component_of[index]
                ordinal = self._components[number].chunks.index(index)
                yield f"{self._digests[number]}.{ordinal}"
            if index in self._dependencies.imports:
                imported.append(self._meanings[index])

    def _key(self, number: int) -> None:
        """Compute the keys of a component's chunks."""
        component = self._components[number]
        orders = self._orders(component)
        for ordinal, index in enumerate(component.chunks):
            acted_before = sum(1 for i in self._dependencies.acting if i < index)
            self._keys[index] = digest_of(
                (
                    str(self._dependencies.future_flags),
                    f"{self._digests[number]}.{ordinal}",
                    orders.get(index, ""),
                    self._dependencies.before.get(index, ""),
                    self._acted,
                    str(acted_before),
                )
            )

    def _orders(self, component: _Component) -> dict[int, str]:
        """Return for each executing chunk a digest of the preceding changes that it depends on."""
        orders: dict[int, str] = {}
        if component.behind and any(i in self._dependencies.executing for i in component.chunks):
            before = hashlib.blake2b(digest_size=16)
            changing = iter([i for i in self._changing if component.behind >> i & 1])
            following = next(changing, None)
            for index in component.chunks:
                while following is not None and following < index:
                    before.update(self._meanings[following].encode())
                    following = next(changing, None)
                if index in self._dependencies.executing:
                    orders[index] = before.hexdigest()
        return orders

    def _arrange(self) -> list[_Component]:
        arranged: list[_Component] = []
        number_of: dict[Node, int] = {}
        roots: list[Node] = [*self._dependencies.chunks]
        for nodes in components(roots, self._edges):
            for node in nodes:
                number_of[node] = len(arranged)
            chunks = tuple(sorted(node for node in nodes if isinstance(node, int)))
            needs = [
                (str(needed) if chunks else "", number_of[needed])
                for node in chunks or nodes
                for needed in self._edges(node)
                if number_of[needed] != len(arranged)
            ]
            behind = sum(1 << i for i in chunks if i in self._changing)
            for node in nodes:
                for needed in self._edges(node):
                    if number_of[needed] != len(arranged):
                        behind |= arranged[number_of[needed]].behind
            arranged.append(_Component(chunks, tuple(needs), behind))
        return arranged

    def _edges(self, node: Node) -> Sequence[Node]:
        """Return the dependencies of a chunk or a name.

        The chunks that change a name depend on it too, so they are one component with it.
        """
        if isinstance(node, str):
            return self._dependencies.events[node]
        return (*self._dependencies.reads[node], *self._changing.get(node, ()))


def _changing(events: Mapping[str, Sequence[int]]) -> dict[int, list[str]]:
    """Return the chunks that share a name with others that bind or change it, with those names.

    The chunks are in order.
    """
    changing: dict[int, list[str]] = {}
    for name in sorted(events):
        if len(events[name]) > 1:
            for index in events[name]:
                changing.setdefault(index, []).append(name)
    return dict(sorted(changing.items()))


def digest_of(parts: Iterable[str]) -> str:
    """Return a digest of several texts in order."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


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
        # An explicit stack: thousands of statements may each read the one before them.
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
