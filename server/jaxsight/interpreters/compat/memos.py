"""Restores the caches of custom derivative rules after a rule was evaluated.

Applies to JAX 0.8 to 0.12.

A rule caches its result for each pattern of zeros and, separately, the tree structure of the last
result. A call that raises clears that structure for the results which were cached before: JAX then
raises "Store empty" when it differentiates the user's cached function again.

Private API used: `lu.WrappedFun`, `lu.Store`, `lu.EqualStore`, and the dictionary in the closure of
`pe._memoize`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jax._src import linear_util as lu


@dataclass(slots=True)
class _Memory:
    """The stores and caches that JAX's functions hold, with their contents at the time."""

    stores: list[tuple[Any, Any]] = field(default_factory=list)
    memos: list[tuple[dict[Any, Any], dict[Any, Any]]] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)

    def add(self, held: Any) -> None:
        if id(held) in self.seen:
            return
        self.seen.add(id(held))
        match held:
            case lu.WrappedFun():
                for inside in (*held.stores, held.f, *(args for _, args in held.transforms)):
                    self.add(inside)
            case lu.EqualStore():
                self.add(held._store)
            case lu.Store():
                self.stores.append((held, held._val))
            case tuple():
                for inside in held:
                    self.add(inside)
            case _ if (getattr(held, "__module__", None) or "").startswith("jax._src"):
                self._closure(held)

    def _closure(self, function: Any) -> None:
        for cell in getattr(function, "__closure__", None) or ():
            try:
                held = cell.cell_contents
            except ValueError:
                continue  # not set yet
            if isinstance(held, dict) and function.__name__ == "memoized":
                self.memos.append((held, dict(held)))
            else:
                self.add(held)

    def restore(self) -> None:
        for store, value in self.stores:
            store._val = value
        for memo, before in self.memos:
            memo.clear()
            memo.update(before)


@contextlib.contextmanager
def undisturbed(*rules: Any, always: bool) -> Iterator[None]:
    """Restore what `rules` have cached if the block raises, or `always`.

    `always` is for rules whose results for two patterns have different tree structures.
    """
    memory = _Memory()
    for rule in rules:
        memory.add(rule)
    try:
        yield
    except BaseException:
        memory.restore()
        raise
    if always:
        memory.restore()
