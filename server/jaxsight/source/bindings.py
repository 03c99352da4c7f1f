"""Which chunks of a module bind a name.

Bindings are computed from the chunks' surfaces alone, and refer to chunks by number, so they stay
valid for every later text with the same surfaces. They say which definitions of a name are visible
from a place; they never follow the names that a chunk reads.
"""

from __future__ import annotations

import bisect
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Protocol

from jaxsight.source.analysis.name_effects import Surface

if TYPE_CHECKING:
    from jaxsight.source.slicing.chunk_roles import Roles


class HasSurface(Protocol):
    """The part of a chunk that bindings are computed from."""

    @property
    def surface(self) -> Surface: ...
    @property
    def mark(self) -> str: ...


class Bindings:
    """The names of a module. Chunks are identified by their number in file order."""

    def __init__(self, chunks: Sequence[HasSurface]) -> None:
        self.count = len(chunks)
        self.roles: Roles | None = None
        """The roles of the chunks, as last computed from these bindings and function bodies."""
        self.future_flags = 0
        """The compiler flags of the module's `from __future__` imports."""
        self.definers: dict[str, list[int]] = {}
        self.ruled: dict[str, list[int]] = {}
        """Chunks that give a function its rules (`f.defvjp(…)`), by the function's name."""
        self.stars: list[int] = []
        self.origins: dict[str, str] = {}
        """The full names of names that only imports bind, always to the same object."""
        self._sure: set[tuple[str, int]] = set()
        otherwise: set[str] = set()
        for index, chunk in enumerate(chunks):
            surface = chunk.surface
            self._define(index, surface)
            self.future_flags |= surface.future_flags
            imported = dict(surface.imports)
            for name, origin in surface.imports:
                if self.origins.setdefault(name, origin) != origin:
                    otherwise.add(name)
            otherwise.update({*surface.binds, *surface.may_bind} - imported.keys())
            for name in surface.rules:
                self.ruled.setdefault(name, []).append(index)
        for name in otherwise:
            self.origins.pop(name, None)

    def reaching(self, name: str, place: int, without: Container[int] = ()) -> list[int]:
        """Return the chunks whose binding of `name` may be in force before chunk `place`.

        These are the last chunk that certainly binds it and the later ones that may bind it;
        earlier ones are excluded, as are those of `without`. `place` may be `count`, the end of the
        module. If no chunk before `place` binds the name, these are the chunks in force at the end,
        because a function may use names that are defined below it.
        """
        definers = self.definers.get(name)
        if definers is None:
            return []
        reaching: list[int] = []
        for at in range(bisect.bisect_left(definers, place) - 1, -1, -1):
            index = definers[at]
            if index in without:
                continue
            reaching.append(index)
            if (name, index) in self._sure:
                break
        if not reaching and place < self.count:
            return self.reaching(name, self.count, without)
        return reaching

    def before(self, name: str, place: int) -> int:
        """Return the number of chunks before `place` that bind `name`."""
        return bisect.bisect_left(self.definers.get(name, ()), place)

    def _define(self, index: int, surface: Surface) -> None:
        for name in surface.binds:
            self.definers.setdefault(name, []).append(index)
            self._sure.add((name, index))
        for name in surface.may_bind:
            self.definers.setdefault(name, []).append(index)
        if index == 0 and surface.is_text:
            self.definers["__doc__"] = [0]
        if surface.star:
            self.stars.append(index)
