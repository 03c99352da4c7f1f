"""Which chunks of a module bind a name.

Bindings are computed from the chunks' name effects alone, and refer to chunks by number, so they
stay valid for every later text with the same effects. They say which definitions of a name are
visible from a place; they never follow the names that a chunk reads.
"""

from __future__ import annotations

import bisect
from collections.abc import Container, Sequence

from jaxsight.source.analysis.name_effects import NameEffects


class Bindings:
    """The names of a module. Chunks are identified by their number in file order."""

    def __init__(self, chunks: Sequence[NameEffects]) -> None:
        """Read them off the name effects of all chunks."""
        self.count = len(chunks)
        self.future_flags = 0
        """The compiler flags of the module's `from __future__` imports."""
        self.definers: dict[str, list[int]] = {}
        self.ruled: dict[str, list[int]] = {}
        """Chunks that give a function its rules (`f.defvjp(…)`), by the function's name."""
        self.stars: list[int] = []
        self.origins: dict[str, str] = {}
        """The full names of names that only imports bind, always to the same object."""
        self._sure: set[tuple[str, int]] = set()
        ambiguous: set[str] = set()
        for index, effects in enumerate(chunks):
            for name in (*effects.binds, *effects.may_bind):
                self.definers.setdefault(name, []).append(index)
            self._sure.update((name, index) for name in effects.binds)
            # A docstring binds `__doc__`, which code may read.
            if index == 0 and effects.is_text:
                self.definers["__doc__"] = [0]
            if effects.star:
                self.stars.append(index)
            self.future_flags |= effects.future_flags
            imported = dict(effects.imports)
            for name, origin in effects.imports:
                if self.origins.setdefault(name, origin) != origin:
                    ambiguous.add(name)
            ambiguous.update({*effects.binds, *effects.may_bind} - imported.keys())
            for name in effects.rules:
                self.ruled.setdefault(name, []).append(index)
        # An import that another statement may have replaced says nothing about the object.
        for name in ambiguous:
            self.origins.pop(name, None)

    def reaching(
        self, name: str, end: int, without: Container[int] = (), last: int | None = None
    ) -> list[int]:
        """Return the chunks whose binding of `name` may be in force before chunk `end`.

        These are the last chunk that certainly binds it and the later ones that may bind it;
        earlier ones are excluded, as are those of `without`. `end` may be `count`, the end of the
        module. If no chunk before `end` binds the name, these are the chunks in force at `last`,
        else at the end, because a function may use names that are defined below it.
        """
        definers = self.definers.get(name)
        if definers is None:
            return []
        reaching: list[int] = []
        for at in range(bisect.bisect_left(definers, end) - 1, -1, -1):
            index = definers[at]
            if index in without:
                continue
            reaching.append(index)
            if (name, index) in self._sure:
                break
        # A function is called after the module has run as far as its call, so it sees what is below
        # it.
        if not reaching and end < self.count:
            further = last if last is not None and end < last else self.count
            return self.reaching(name, further, without)
        return reaching

    def before(self, name: str, index: int) -> int:
        """Return the number of chunks before `index` that bind `name`."""
        return bisect.bisect_left(self.definers.get(name, ()), index)
