"""The keys of a slice's chunks: when two executions of a chunk must come to the same.

A chunk's key is made of its meaning, of the keys of all that it depends on, of the order in which things that change were
changed before it, and of what configures the process. Chunks that depend on each other (functions that call each other; a list
and the statements that append to it) share one. Positions, comments and docstrings are in no key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from jaxsight.engine.components import components
from jaxsight.engine.module import Module

Node = int | str
"""A chunk by its number, or a name, which stands for all that binds or changes it."""


def keys_of(
    module: Module, members: Sequence[int], events: Mapping[str, Sequence[int]]
) -> list[str]:
    """A key for each member of a slice.

    Args:
        members: the slice's chunks by their numbers, in order.
        events: for every name that the slice needs, the members that bind or change it, in order.
    """
    return _Keying(module, members, events).keys()


class _Keying:
    def __init__(
        self, module: Module, members: Sequence[int], events: Mapping[str, Sequence[int]]
    ) -> None:
        self.module = module
        self.members = members
        self.events = events
        pieces = {index: module.chunks[index].piece for index in members}
        documented = any("__doc__" in piece.text for piece in pieces.values())
        self.meanings = {
            index: piece.meaning_with_docstrings if documented else piece.meaning
            for index, piece in pieces.items()
        }
        self.reads = {
            index: sorted(
                name
                for name in piece.reads.now | piece.reads.later | piece.reads.perhaps
                if events.get(name)
            )
            for index, piece in pieces.items()
        }
        self.changing = _changing(events)
        self.digests: dict[Node, str] = {}
        self.orders: dict[int, str] = {}

    def keys(self) -> list[str]:
        self._digest_all()
        configuring = set(self.module.bindings.configuring).union(self.module.bindings.stars)
        settings = [(i, self.digests[i]) for i in self.members if i in configuring]
        everything = _hash(digest for _, digest in settings)
        flags = str(self.module.future_flags)
        return [
            _hash(
                (
                    flags,
                    self.digests[index],
                    self.orders.get(index, ""),
                    everything,
                    str(sum(1 for i, _ in settings if i < index)),
                )
            )
            for index in self.members
        ]

    def _digest_all(self) -> None:
        """Digests of all chunks and names, what they depend on first."""
        behind: dict[Node, int] = {}
        for component in components(self.members, self._edges):
            chunks = sorted(node for node in component if isinstance(node, int))
            inside = set(component)
            parts: list[str] = []
            mask = 0
            for node in component:
                for other in self._edges(node):
                    if other not in inside:
                        mask |= behind[other]
            for index in chunks:
                mask |= self._bit(index)
                parts.append(self.meanings[index])
                parts += [f"{name}={self.digests.get(name, '')}" for name in self.reads[index]]
            if not chunks:
                parts += [self.digests[other] for node in component for other in self._edges(node)]
            whole = _hash(parts)
            for node in component:
                behind[node] = mask
                self.digests[node] = whole
            for ordinal, index in enumerate(chunks):
                self.digests[index] = f"{whole}.{ordinal}"
                self._order(index, mask)

    def _order(self, index: int, mask: int) -> None:
        """What was changed before the chunk, of all that it depends on, in order."""
        before = mask & ((1 << index) - 1)
        if before and self.module.chunks[index].surface.executes:
            self.orders[index] = _hash(
                self.meanings[other] for other in self.changing if before >> other & 1
            )

    def _bit(self, index: int) -> int:
        return 1 << index if index in self.changing else 0

    def _edges(self, node: Node) -> Iterable[Node]:
        """What a chunk or a name depends on. Those that change a name depend on it too: they are one with it."""
        if isinstance(node, str):
            return self.events[node]
        names = self.reads[node]
        own = self.changing.get(node)
        return names if own is None else (*names, *own)


def _changing(events: Mapping[str, Sequence[int]]) -> dict[int, list[str]]:
    """The chunks that share a name with others that bind or change it, in order, with those names."""
    found: dict[int, list[str]] = {}
    for name in sorted(events):
        if len(events[name]) > 1:
            for index in events[name]:
                found.setdefault(index, []).append(name)
    return dict(sorted(found.items()))


def _hash(parts: Iterable[str]) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
