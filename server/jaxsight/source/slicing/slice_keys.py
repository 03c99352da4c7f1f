"""The keys of a slice's chunks: equal keys mean that two executions have the same result.

A chunk's key is computed from the meanings of all chunks that it depends on, the order of those
among them that change the same names, the order in which names were bound before it, and all acting
chunks, in order, because those may change anything. Positions, comments and docstrings are in no
key.

Dependencies are computed once. After an edit that leaves them unchanged, only what depends on the
edit is computed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dependencies:
    """How the chunks of a slice depend on each other.

    * `reads`: for every chunk, the names of the slice that it uses.
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


class SliceKeys:
    """Computes the keys of one slice repeatedly, as meanings change."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._dependencies = dependencies
        shared = [chunks for chunks in dependencies.events.values() if len(chunks) > 1]
        self._changing = frozenset(index for chunks in shared for index in chunks)
        """The chunks that share a name with others that bind or change it."""
        self._behind = _behind(dependencies)
        self._meanings: dict[int, str] = {}
        self._contents: dict[int, str] = {}
        self._keys: list[str] = []

    def keys(self, meanings: Mapping[int, str]) -> list[str]:
        """Return a key for each chunk, given the digests of their meanings."""
        edited = sum(1 << i for i, meaning in meanings.items() if self._meanings.get(i) != meaning)
        if edited:
            self._meanings.update(meanings)
            for index, behind in self._behind.items():
                if behind & edited:
                    self._contents[index] = self._content(index, behind)
            self._keys = list(self._all_keys())
        return self._keys

    def _all_keys(self) -> Iterator[str]:
        dependencies = self._dependencies
        acted, acted_before = digest_of(self._actions()), 0
        for index in dependencies.chunks:
            yield digest_of(
                (
                    str(dependencies.future_flags),
                    self._contents[index],
                    dependencies.before.get(index, ""),
                    acted,
                    str(acted_before),
                )
            )
            acted_before += index in dependencies.acting

    def _content(self, index: int, behind: int) -> str:
        """Return a digest of a chunk and of all that it depends on."""
        plain: list[str] = []
        changes: tuple[list[str], list[str]] = [], []
        has_order = index in self._changing or index in self._dependencies.executing
        for number in _bits(behind):
            if number in self._changing:
                changes[has_order and number >= index].append(self._meanings[number])
            else:
                plain.append(self._meanings[number])
        parts = (plain, *changes)
        plain.sort()  # the order of definitions does not matter
        return digest_of((self._meanings[index], *map(digest_of, parts)))

    def _actions(self) -> Iterator[str]:
        """Yield the digests of acting chunks, in order, and of the imports before each.

        An imported module may depend on what ran before its import.
        """
        dependencies = self._dependencies
        if dependencies.acting:
            # The order of all that runs: a statement that moves may fail, or see another value.
            yield digest_of(
                f"{i}={before}" for i, before in enumerate(dependencies.before.values())
            )
        imported: list[str] = []
        for index in dependencies.chunks:
            if index in dependencies.acting:
                yield digest_of(imported)
                yield self._contents[index]
            if index in dependencies.imports:
                imported.append(self._meanings[index])


def _behind(dependencies: Dependencies) -> dict[int, int]:
    """Return the bit set of all chunks that each chunk depends on, itself among them.

    The chunks that change a name depend on each other.
    """
    needed: dict[int, set[int]] = {
        index: {index}.union(*(dependencies.events[name] for name in dependencies.reads[index]))
        for index in dependencies.chunks
    }
    for chunks in dependencies.events.values():
        for index in chunks if len(chunks) > 1 else ():
            needed[index].update(chunks)
    behind = {index: sum(1 << other for other in others) for index, others in needed.items()}
    grows = True
    while grows:  # one round for most modules, as names are bound above their use
        grows = False
        for index, others in needed.items():
            before = bits = behind[index]
            for other in others:
                bits |= behind[other]
            behind[index] = bits
            grows |= bits != before
    return behind


def _bits(number: int) -> Iterator[int]:
    """Yield the numbers in a bit set, in order."""
    digits = f"{number:b}"[::-1]
    at = digits.find("1")
    while at >= 0:
        yield at
        at = digits.find("1", at + 1)


def digest_of(parts: Iterable[str]) -> str:
    """Return a digest of several texts in order."""
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
