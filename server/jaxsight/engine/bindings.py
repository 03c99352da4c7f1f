"""Which chunks of a module bind a name.

Made of the chunks' surfaces alone, by their numbers, so that it holds for every later text in which
the surfaces are the same. It says which definitions of a name can be seen from a place; it never
follows what a chunk reads.
"""

from __future__ import annotations

import bisect
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Protocol

from jaxsight.engine.surface import Surface

if TYPE_CHECKING:
    from jaxsight.engine.roles import Roles


class HasSurface(Protocol):
    """What is needed of a chunk."""

    @property
    def surface(self) -> Surface: ...
    @property
    def mark(self) -> str: ...


class Bindings:
    """The names of a module. Chunks are named by their number in the file's order."""

    def __init__(self, chunks: Sequence[HasSurface]) -> None:
        self.count = len(chunks)
        self.roles: Roles | None = None
        """What the chunks do, as worked out last from these bindings and the functions' bodies."""
        self.future_flags = 0
        """The compiler flags of the module's `from __future__` imports."""
        self.definers: dict[str, list[int]] = {}
        self.ruled: dict[str, list[int]] = {}
        """Chunks that give a function its rules, by its name."""
        self.stars: list[int] = []
        self.origins: dict[str, str] = {}
        """What names stand for that only imports bind, and all alike."""
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
        """The chunks whose binding of `name` may be the one in force before chunk `place` (`count`:
        at the end).

        The last certain one, those after it that perhaps bind it, none that come earlier, and none
        of `without`. Where none comes before `place`, the one that is in force at the end: a
        function may use what is defined below it.
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
        """How many chunks before `place` bind `name`."""
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
