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

from jaxsight_source.jaxprs.contents import cell_contents


@dataclass(slots=True)
class _Memory:
    """The stores and caches that JAX's functions hold, with their contents at the time."""

    stores: list[tuple[lu.Store, Any]] = field(default_factory=list)
    memos: list[tuple[dict[object, object], dict[object, object]]] = field(default_factory=list)
    visited: set[int] = field(default_factory=set)

    def add(self, value: object) -> None:
        if id(value) in self.visited:
            return
        self.visited.add(id(value))
        match value:
            case lu.WrappedFun():
                args = (args for _, args in value.transforms)
                for inside in (*value.stores, value.f, *args):
                    self.add(inside)
            case lu.EqualStore():
                self.add(value._store)
            case lu.Store():
                self.stores.append((value, value._val))
            case tuple():
                for inside in value:
                    self.add(inside)
            case _ if (getattr(value, "__module__", None) or "").startswith("jax._src"):
                for cell in getattr(value, "__closure__", None) or ():
                    held = cell_contents(cell)
                    if isinstance(held, dict) and getattr(value, "__name__", "") == "memoized":
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
def undisturbed(*rules: object, always: bool) -> Iterator[None]:
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
