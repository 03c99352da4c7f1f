"""The proved expressions of a module's equations, from the candidates that rules yield."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

from jaxsight.sourcerizer.equations.claims import VARIANTS
from jaxsight.sourcerizer.equations.fallback import by_name, by_package, by_primitive
from jaxsight.sourcerizer.equations.idioms import Window, candidates
from jaxsight.sourcerizer.equations.registry import IDIOMS, LAX, PRETTY, Spelling, View
from jaxsight.sourcerizer.errors import Unsourceable, Unwritable
from jaxsight.sourcerizer.options import Style
from jaxsight.sourcerizer.proof import cache
from jaxsight.sourcerizer.proof.prover import Claim, Proved, Prover
from jaxsight.sourcerizer.text.exprs import Expr
from jaxsight.sourcerizer.text.layout import flat


class Proofs:
    """Proved expressions, by the keys of equations."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.prover = Prover()
        self._spelled: dict[Hashable, Proved] = {}
        self._idioms: dict[Hashable, Proved | None] = {}

    def prove(self, view_of: Callable[[int], View], claim: Claim, key: object) -> Proved:
        """Return the best proved expression of an equation, or raise `Unsourceable`."""
        proved = self._first_proved(view_of, claim, self._sources())
        proved = Proved(proved.expr, proved.results, bound=".bind(" in flat(proved.expr))
        cache.keep(self._key_anywhere(key), proved)
        if key is not None:
            self._spelled[key] = proved
        return proved

    def proved(self, key: object) -> Proved | None:
        """Return the proved expression for such an equation, from this text or another, or None."""
        if key is None:
            return None
        proved: Proved | None = self._spelled.get(key)
        if proved is None:
            proved = cache.proved(self._key_anywhere(key))
            if proved is not None:
                self._spelled[key] = proved
        return proved

    def prove_window(self, windows: Sequence[Window], key: object) -> Expr | None:
        """Return a proved expression with slots for several equations together, or None."""
        if key is not None and key in self._idioms:
            proved = self._idioms[key]
        else:
            proved = self._first_proved_window(windows)
            if key is not None:
                self._idioms[key] = proved
        return proved.expr if proved else None

    def prove_whole(
        self, view_of: Callable[[int], View], claim: Claim, key: object
    ) -> Proved | None:
        """Return a proved public call for an equation with inner programs, or None."""
        if key is not None and key in self._idioms:
            return self._idioms[key]
        try:
            sources: list[Spelling] = [_pretty, _plain] if self.style == "pretty" else [_plain]
            proved = self._first_proved(view_of, claim, sources)
        except Unsourceable:
            proved = None
        if key is not None:
            self._idioms[key] = proved
        return proved

    def _key_anywhere(self, key: object) -> Any:
        return cache.key_of(self.style, self.prover.axes, key)

    def _sources(self) -> Iterator[Spelling]:
        if self.style == "pretty":
            yield _pretty
        yield _plain
        yield by_name
        yield by_package
        yield by_primitive

    def _first_proved(
        self,
        view_of: Callable[[int], View],
        claim: Claim,
        sources: Iterable[Spelling],
    ) -> Proved:
        tried: set[str] = set()
        whys: list[str] = []
        for source in sources:
            for variant in range(VARIANTS):
                for candidate in _candidates(source(view_of(variant)), whys):
                    text = flat(candidate)
                    if text in tried:
                        continue
                    tried.add(text)
                    results = self.prover.proves(candidate, claim)
                    if results is not None:
                        return Proved(candidate, *results)
        why = f"none of {len(tried)} candidate expressions is the same program"
        if whys:
            why = f"{why} ({whys[0]})" if tried else whys[0]
        raise Unsourceable(claim.equations[-1].primitive.name, why)

    def _first_proved_window(self, windows: Sequence[Window]) -> Proved | None:
        tried: set[str] = set()
        for window in windows:
            claim = Claim(window.equations, window.inputs, [window.output])
            for candidate in candidates(IDIOMS, window, self.style == "pretty"):
                text = flat(candidate)
                if text in tried:
                    continue
                tried.add(text)
                results = self.prover.proves(candidate, claim)
                if results == (0,):
                    return Proved(candidate, 0)
        return None


def _candidates(spelled: Iterator[Expr], whys: list[str]) -> Iterator[Expr]:
    """Yield the candidates of a rule until it raises an error; append its text to `whys`."""
    try:
        yield from spelled
    except (Unwritable, KeyError) as error:
        whys.append(str(error))


def _pretty(view: View) -> Iterator[Expr]:
    rule = PRETTY.of(view.name)
    return rule(view) if rule else iter(())


def _plain(view: View) -> Iterator[Expr]:
    rule = LAX.of(view.name)
    return rule(view) if rule else iter(())
