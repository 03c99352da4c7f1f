"""What the user called the variables of a jaxpr, seen while it is made: exact where source positions are ambiguous, as in gradients."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxsight.tracer import observer, protocol
from jaxsight.tracer.compat.variables import variable


@dataclass(slots=True)
class _Named:
    """A variable, and the site that last bound a name to it. `passed`: it has been an argument since, where it has other names."""

    variable: Any
    """Kept alive, so that no other one gets its address."""
    site: int = -1
    passed: bool = False


@dataclass(slots=True)
class Naming:
    """To be the recorder's `naming` while a function is traced."""

    site: Callable[[int], tuple[str, observer.Site] | None]
    """The chunk and the site of a number."""
    chunks: Sequence[protocol.Chunk]
    _named: dict[int, _Named] = field(default_factory=dict)
    _kinds: dict[int, str] = field(default_factory=dict)

    def __call__(self, number: int, value: Any) -> None:
        """A value was seen at a site."""
        kind = self._kinds.get(number)
        if kind is None:
            kind = self._kinds[number] = self._kind(number)
        if kind == "expression" or (seen := variable(value)) is None:
            return
        named = self._named.setdefault(id(seen), _Named(seen))
        if kind == "parameter":
            named.passed = True
        elif not named.passed:
            named.site = number

    def _kind(self, number: int) -> str:
        """What a site records besides expressions."""
        found = self.site(number)
        places = found[1].places if found is not None else []
        return next((place.kind for place in places if place.kind != "expression"), "expression")

    def name_of(self, variable: Any) -> str | None:
        """The name that the outermost function gave a variable, as far as one is known."""
        named = self._named.get(id(variable))
        found = self.site(named.site) if named is not None and named.site >= 0 else None
        if found is None:
            return None
        chunk, site = found
        place = next(place for place in site.places if place.kind == "target")
        text = next((each.text for each in self.chunks if each.id == chunk), "")
        name = _text(text, place)
        return name if name.isidentifier() and not keyword.iskeyword(name) else None


def _text(text: str, place: observer.Place) -> str:
    lines = text.split("\n")
    if place.line != place.end_line or place.line > len(lines):
        return ""
    row = lines[place.line - 1].encode("utf-8", "surrogatepass")
    return row[place.column : place.end_column].decode("utf-8", "replace")
