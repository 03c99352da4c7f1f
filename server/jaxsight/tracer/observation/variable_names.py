"""Record the user's names of a jaxpr's variables during tracing.

These are exact even if source positions are ambiguous, as in gradients.
"""

from __future__ import annotations

import functools
import keyword
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxsight.rewriting.rewriter import Kind, Site
from jaxsight.tracer.compat.traces import underlying_variable
from jaxsight.wire.chunks import Chunk, chunk_of, line_in_chunk
from jaxsight_source.compat.jaxpr_types import Aval, Var


@dataclass(slots=True)
class _Named:
    """A variable, and the site that last bound a name to it.

    `passed`: it has been an argument since, where it has other names.
    """

    variable: Var | None
    """Kept alive, so that its address is not reused."""
    site: int = -1
    passed: bool = False


@dataclass
class Naming:
    """The recorder's `naming` while a function is traced."""

    site: Callable[[int], tuple[str, Site] | None]
    """Returns the chunk and the site of a number."""
    chunks: Sequence[Chunk]
    file: str
    """The file of the chunks."""
    _named: dict[int, _Named] = field(default_factory=dict)
    _kinds: dict[int, Kind] = field(default_factory=dict)
    _types: dict[int, set[object]] = field(default_factory=dict)
    """Avals of the values that a site bound to a name, by site."""

    def __call__(self, number: int, value: Any) -> None:
        """Record a value at a site."""
        kind = self._kinds.get(number)
        if kind is None:
            _, site = self.site(number) or ("", None)
            kinds = [at.kind for at in site.ranges] if site is not None else []
            others = (each for each in kinds if each != "expression")
            kind = self._kinds[number] = next(others, "expression")
        if kind == "target":
            self._types.setdefault(number, set()).add(value.aval)
        if kind == "expression" or (observed := underlying_variable(value)) is None:
            return
        named = self._named.setdefault(id(observed), _Named(observed))
        if kind == "parameter":
            named.passed = True
        elif not named.passed:
            named.site = number

    def fits(self, file: str, position: tuple[int, int, int, int], aval: Aval) -> bool:
        """Return whether the expression at a place had values of this type, if it was recorded."""
        named = chunk_of(file)
        if named is None or named["path"] != self.file:
            return False
        line, column, end_line, end_column = position
        first, last = (line_in_chunk(named, file_line) for file_line in (line, end_line))
        return aval in self._by_place.get((named["chunk"], first, column, last, end_column), ())

    @functools.cached_property
    def _by_place(self) -> dict[tuple[str, int, int, int, int], set[object]]:
        """Types by place of an expression; to be read only after tracing."""
        types_by_position: dict[tuple[str, int, int, int, int], set[object]] = {}
        for number, types in self._types.items():
            chunk, site = self.site(number) or ("", None)
            for at in site.ranges if site is not None else ():
                if at.kind == "expression":
                    key = (chunk, at.line, at.column, at.end_line, at.end_column)
                    types_by_position.setdefault(key, set()).update(types)
        return types_by_position

    def name_of(self, variable: Var) -> str | None:
        """Return the outermost function's name of a variable, if known."""
        named = self._named.get(id(variable))
        chunk_and_site = self.site(named.site) if named is not None and named.site >= 0 else None
        if chunk_and_site is None:
            return None
        chunk, site = chunk_and_site
        at = next(at for at in site.ranges if at.kind == "target")
        text = next((executed.text for executed in self.chunks if executed.id == chunk), "")
        row = "".join(text.split("\n")[at.line - 1 : at.line]).encode("utf-8", "surrogatepass")
        # Columns of `ast` count bytes of UTF-8.
        name = row[at.column : at.end_column].decode("utf-8", "replace")
        is_name = at.line == at.end_line and name.isidentifier() and not keyword.iskeyword(name)
        return name if is_name else None
