"""Choose sizes for shapes, different ones where nothing says that they are equal."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from itertools import chain, count

from jaxsight.examples.proposals.interpreting.evidence import Evidence
from jaxsight.examples.proposals.interpreting.shapes import Dim, Shape
from jaxsight.examples.proposals.proposal import Demanded, Length

_POOL = (4, 8, 16, 32, 64, 24, 48, 12, 40)
"""Each divides most of those after it, so that what a body divides is likely divisible."""
USUAL_RANK = 2
"""The rank of arrays about which nothing is known: rows of features, as most functions take."""
_HIGHEST_RANK = 8
"""Axes of an array: a choice. Code that seems to ask for more was misread."""


class Sizing:
    """The shapes of a function's arrays: numbers, and the names that the code gives to sizes."""

    def __init__(self, taken: set[str]) -> None:
        """Begin without shapes; `taken` names cannot be names of sizes."""
        self.sizes: dict[str, int] = {}
        self._taken = taken
        self._shapes: dict[str, Shape] = {}
        self._usual = [Dim() for _ in range(_HIGHEST_RANK)]
        """The last sizes of arrays about which nothing is known, from the end."""
        self._written: dict[int, Length] = {}
        self._numbers: Iterator[int] = chain(_POOL, count(56, 8))
        self._is_laid_out = False

    def add(self, name: str, evidence: Evidence) -> None:
        """Take the shape of a parameter, and those of its items."""
        self._is_laid_out = False
        self._shapes[name] = evidence.shape
        for key, facts in evidence.keys.items():
            if facts.keys:
                self.add(f"{name}[{key}]", facts)
            else:
                self._shapes[f"{name}[{key}]"] = facts.shape

    def shape(self, name: str) -> tuple[Length, ...]:
        """Return the shape of a parameter that was added, the usual one of another."""
        self._lay_out()
        if name not in self._shapes:
            return self.usual()
        dims = self._shapes[name].dims or []
        return tuple(self._written[id(dim.find())] for dim in dims)

    def usual(self) -> tuple[Length, ...]:
        """Return the shape of arrays about which nothing is known."""
        self._lay_out()
        return tuple(self._written[id(dim.find())] for dim in reversed(self._usual[:USUAL_RANK]))

    def _lay_out(self) -> None:
        """Fix all ranks, and choose all sizes."""
        if self._is_laid_out:
            return
        self._is_laid_out = True
        for shape in self._shapes.values():
            root = shape.find()
            if root.rank is None:
                rank = root.likely if root.likely is not None else USUAL_RANK
                extent = max([i + 1 for i in (*root.front, *root.back)], default=0)
                shape.set_rank(min(max(rank, root.least, extent), _HIGHEST_RANK))
        self._share({id(s.find()): s.find() for s in self._shapes.values()})
        for shape in self._shapes.values():
            for dim in shape.dims or ():
                self._write(dim.find())
        for dim in (*reversed(self._usual[:USUAL_RANK]), *self._usual[USUAL_RANK:]):
            self._write(dim.find())

    def _share(self, roots: dict[int, Shape]) -> None:
        """Give sizes that nothing is known about to all arrays alike, so that they broadcast."""
        dims = {key: [dim.find() for dim in shape.dims or ()] for key, shape in roots.items()}
        uses: dict[int, int] = {}
        origins: set[int] = set()
        for every in dims.values():
            for key in {id(dim) for dim in every}:
                uses[key] = uses.get(key, 0) + 1
            origins |= {id(dim.origin[0]) for dim in every if dim.base is not None}
        for every in dims.values():
            for distance, dim in enumerate(reversed(every)):
                root = dim.find()
                is_free = uses[id(dim)] == 1 and not root.name and root.number is None
                is_free = is_free and root.base is None and id(root) not in origins
                occurs_once = sum(other.find() is root for other in every) == 1
                if is_free and occurs_once and id(root) not in self._written:
                    usual = self._usual[distance]
                    if id(usual.find()) in self._written:
                        usual.unify(root)
                    else:
                        root.unify(usual)

    def _write(self, dim: Dim) -> None:
        key = id(dim)
        if key in self._written:
            return
        if dim.number is not None:
            self._written[key] = Demanded(dim.number)
            return
        origin, more = dim.origin
        if origin is not dim:
            self._write(origin)
            size = self._written[id(origin)]
            number = self.sizes[size] if isinstance(size, str) else size
            self._written[key] = max(number + more, 1)
            return
        number = next(self._numbers)
        if name := self._name(dim.name):
            self.sizes[name] = number
        self._written[key] = name or number

    def _name(self, wanted: str) -> str:
        """Return a name for a size that no parameter and no other size has; else an empty one."""
        name = wanted.strip("_")
        if not re.fullmatch(r"[A-Za-z]\w{0,23}", name) or keyword.iskeyword(name):
            return ""
        if name in self._taken:
            name = name.upper()
        return "" if name in self._taken or name in self.sizes or name == "where" else name
