"""What asking a rule of a custom derivative leaves behind, and taking it back.

Holds for JAX 0.8 to 0.12.

A rule remembers its answer for each pattern of zeros, and, apart from that, how the last answer was
nested. An answer that is refused takes the latter away from those that were given before: JAX then
finds a "Store empty" when it differentiates the user's function, which is cached, again.

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
    """Stores and memos that functions of JAX's hold, with what was in them."""

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
    """Leaves what rules remember as it was: when asking them fails, or `always`, as where answers
    for two patterns are nested in two ways.
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
