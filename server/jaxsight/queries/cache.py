"""Caches with a policy: how many entries are kept, and which events drop them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

from jaxsight.lru import Recent

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


TEXTS = 16
"""Texts of one function that are remembered, a choice: enough to undo and redo some edits."""


class Cache(Recent[K, V]):
    """A map whose entries are dropped by its policy; `queries/memory.py` lists all of them."""

    def __init__(
        self,
        *,
        size: int | None = None,
        file: Callable[[K], str] | None = None,
        function: Callable[[K, V], Hashable] | None = None,
        outdated: bool = False,
        retried: bool = False,
    ) -> None:
        """State the policy.

        Args:
            size: maximum number of entries; those that were not used for the longest time go first.
            file: the file that a key is about, whose entries are dropped when it is closed.
            function: what an entry is about, whatever its text; only the last `TEXTS` of those are
                kept, as each edit adds one, and few of them are returned to.
            outdated: drop all entries when settings, interpreters or decisions change.
            retried: drop all entries when anything changes outside of the texts.
        """
        super().__init__(size)
        self._file = file
        self._function = function
        self._drops_outdated = outdated
        self._drops_retried = retried

    def put(self, key: K, value: V) -> None:
        """Add an entry, or replace its value."""
        if self._function is not None and key not in self._entries:
            about = self._function(key, value)
            of_function = [k for k, v in self._entries.items() if self._function(k, v) == about]
            for old in of_function[: max(len(of_function) - TEXTS + 1, 0)]:
                del self._entries[old]
        super().put(key, value)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yield the entries at the time of the call."""
        yield from list(self._entries.items())

    def close(self, path: str) -> None:
        """Drop what is about a file that was closed."""
        if self._file is not None:
            for key in [key for key in self._entries if self._file(key) == path]:
                del self._entries[key]

    def outdate(self) -> None:
        """Drop what settings, interpreters or decisions may change."""
        if self._drops_outdated:
            self.clear()

    def retry(self) -> None:
        """Drop what files on disk or other machines may change."""
        if self._drops_retried:
            self.clear()
