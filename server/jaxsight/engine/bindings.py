"""Which chunks of a module bind a name, change what it stands for, or must always be executed.

Made of the chunks' surfaces alone, by their numbers, so that it holds for every later text in which the surfaces are the
same. It says which definitions of a name can be seen from a place; it never follows what a chunk reads.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from jaxsight.engine.cache import Recent
from jaxsight.engine.surface import Surface

if TYPE_CHECKING:
    from jaxsight.engine.slices import Plan


_PLANS_KEPT = 64


class HasSurface(Protocol):
    """What is needed of a chunk."""

    @property
    def surface(self) -> Surface: ...
    @property
    def always(self) -> bool: ...


class Bindings:
    """The names of a module. Chunks are named by their number in the file's order."""

    def __init__(self, chunks: Sequence[HasSurface]) -> None:
        self.count = len(chunks)
        self.plans: Recent[tuple[tuple[str, ...], int | None], Plan] = Recent(_PLANS_KEPT)
        """What was worked out from these bindings about slices."""
        self.future_flags = 0
        """The compiler flags of the module's `from __future__` imports."""
        self.definers: dict[str, list[int]] = {}
        self.changers: dict[str, list[int]] = {}
        """Chunks that change what a name stands for without binding it."""
        self.stars: list[int] = []
        self.configuring: list[int] = []
        """Chunks that are executed whatever is traced."""
        self._sure: set[tuple[str, int]] = set()
        self._loops: set[int] = set()
        imported: set[str] = set()
        otherwise: set[str] = set()
        for index, chunk in enumerate(chunks):
            surface = chunk.surface
            self._define(index, surface)
            self.future_flags |= surface.future_flags
            imported.update(surface.imports)
            if len(surface.imports) < len(surface.binds) + len(surface.may_bind):
                otherwise.update({*surface.binds, *surface.may_bind} - {*surface.imports})
        self.modules = imported - otherwise
        """Names that only imports bind."""
        self._collect_changers(chunks)

    def changing(self, name: str) -> Sequence[int]:
        """The chunks that change what the name stands for."""
        return self.changers.get(name, ())

    def reaching(self, name: str, place: int, anchor: int) -> list[int]:
        """The chunks whose binding of `name` may be the one in force before chunk `place` (`count`: at the end).

        The last certain one, those behind it that perhaps bind it, none that come earlier. Where none comes before `place`, the one that is in
        force at the end: a function may use what is defined below it. A loop below chunk `anchor` that only binds anew what is
        bound above it is left out: it trains or prints, and changes no shape.
        """
        definers = self.definers.get(name)
        if definers is None:
            return []
        found: list[int] = []
        for at in range(bisect.bisect_left(definers, place) - 1, -1, -1):
            index = definers[at]
            if at and index > anchor and index in self._loops:
                continue
            found.append(index)
            if (name, index) in self._sure:
                break
        if not found and place < self.count:
            return self.reaching(name, self.count, anchor)
        return found

    def is_idle_loop(self, name: str, index: int, anchor: int) -> bool:
        """Whether a chunk is a loop below `anchor`, which changes what is bound above it."""
        return (
            index in self._loops and index > anchor and self.definers.get(name, [index])[0] < index
        )

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
        if surface.loops:
            self._loops.add(index)

    def _collect_changers(self, chunks: Sequence[HasSurface]) -> None:
        aliases: dict[str, set[str]] = {}
        for chunk in chunks:
            for one, other in chunk.surface.aliases:
                aliases.setdefault(one, set()).add(other)
        for index, chunk in enumerate(chunks):
            surface = chunk.surface
            if surface.configures or chunk.always:
                self.configuring.append(index)
            changed = {
                *surface.assigns_into,
                *(n for n in surface.calls_on if n not in self.modules),
            }
            # What is told to an object of the module's own changes that object, not what it is told about.
            registered = {
                name
                for library, name in surface.registers
                if library in self.modules or library not in self.definers
            }
            if not changed and not registered:
                continue
            pending = list(changed)
            while pending:
                for other in aliases.get(pending.pop(), ()):
                    if other not in changed and other not in self.modules:
                        changed.add(other)
                        pending.append(other)
            for name in sorted(changed | registered):
                self.changers.setdefault(name, []).append(index)
