"""The proved expressions of a module's equations, from the candidates that rules yield."""

from __future__ import annotations

import ast
import enum
import functools
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from jaxsight_source.compat.staging import is_jaxpr, trace_settings
from jaxsight_source.equations import registry
from jaxsight_source.equations.idioms import Window, candidates
from jaxsight_source.errors import Unsourceable, Unwritable
from jaxsight_source.jaxprs.base import Rules
from jaxsight_source.options import Style
from jaxsight_source.proof.prover import Claim, Proved, Prover
from jaxsight_source.text.layout import flat

_MOST_KEPT = 4096
"""The maximum number of expressions kept for all texts; they are then cleared, and proved again."""

_ANYWHERE: dict[Hashable, Proved] = {}
"""Proved expressions of equations of JAX's own primitives, for all texts of this process.

Each text is compared as a whole in any case, so a stale entry would be detected there.
"""

_PLAIN = (type(None), bool, int, float, complex, str, np.dtype, np.generic, enum.Enum)


def _key_anywhere(style: str, axes: Sequence[tuple[object, int]], key: Any) -> Hashable | None:
    """Return the cache key of an expression, from its key in one text.

    Return None if its parameters are not JAX's or Python's own, so that their `==` may ignore
    differences.
    """
    if key is None:
        return None
    primitive, parameters = key[:2]
    if not _is_of_jax(primitive) or not all(_is_plain(value) for _, value in parameters):
        return None
    # With the `repr`, as 1, 1.0 and True are equal.
    return (style, tuple(axes), key, repr(parameters), trace_settings())


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return all(map(_is_plain, value))
    if isinstance(value, _PLAIN):
        return True
    return _is_of_jax(value) and not callable(value) and not is_jaxpr(value)


def _is_of_jax(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib")


class Proofs:
    """Proved expressions, by the keys of equations."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.prover = Prover(sums=style == "pretty")
        rules = (registry.PRETTY, registry.LAX) if style == "pretty" else (registry.LAX,)
        self._rules: list[registry.Spelling] = [functools.partial(_spelled, own) for own in rules]
        self._spelled: dict[Hashable, Proved] = {}
        self._idioms: dict[Hashable, Proved | None] = {}

    def prove(
        self, view_of: Callable[[int], registry.EquationView], claim: Claim, key: object
    ) -> Proved:
        """Return the best proved expression of an equation, or raise `Unsourceable`."""
        sources = (*self._rules, registry.by_name, registry.by_package, registry.by_primitive)
        proved = self._first_proved(view_of, claim, sources)
        proved = Proved(proved.expr, proved.results, bound=".bind(" in flat(proved.expr))
        if (anywhere := _key_anywhere(self.style, self.prover.axes, key)) is not None:
            if len(_ANYWHERE) >= _MOST_KEPT:
                _ANYWHERE.clear()
            _ANYWHERE[anywhere] = proved
        if key is not None:
            self._spelled[key] = proved
        return proved

    def proved(self, key: object) -> Proved | None:
        """Return the proved expression for such an equation, from this text or another, or None."""
        if key is None:
            return None
        proved: Proved | None = self._spelled.get(key)
        if proved is None:
            proved = _ANYWHERE.get(_key_anywhere(self.style, self.prover.axes, key))
            if proved is not None:
                self._spelled[key] = proved
        return proved

    def prove_window(self, windows: Sequence[Window], key: object) -> ast.expr | None:
        """Return a proved expression with slots for several equations together, or None."""
        proved = self._once(key, lambda: self._first_proved_window(windows))
        return proved.expr if proved else None

    def prove_whole(
        self, view_of: Callable[[int], registry.EquationView], claim: Claim, key: object
    ) -> Proved | None:
        """Return a proved public call for an equation with inner programs, or None."""

        def prove() -> Proved | None:
            try:
                return self._first_proved(view_of, claim, self._rules)
            except Unsourceable:
                return None

        return self._once(key, prove)

    def _once(self, key: object, prove: Callable[[], Proved | None]) -> Proved | None:
        if key is None:
            return prove()
        if key not in self._idioms:
            self._idioms[key] = prove()
        return self._idioms[key]

    def _first_proved(
        self,
        view_of: Callable[[int], registry.EquationView],
        claim: Claim,
        sources: Iterable[registry.Spelling],
    ) -> Proved:
        tried: set[str] = set()
        whys: list[str] = []
        for source, variant in itertools.product(sources, range(registry.VARIANTS)):
            for candidate in _untried(_candidates(source(view_of(variant)), whys), tried):
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
            own = candidates(registry.IDIOMS, window, self.style == "pretty")
            for candidate in _untried(own, tried):
                if self.prover.proves(candidate, claim) == (0,):
                    return Proved(candidate, 0)
        return None


def _untried(spelled: Iterable[ast.expr], tried: set[str]) -> Iterator[ast.expr]:
    """Yield the expressions whose text was not tried yet; add it to `tried`."""
    for candidate in spelled:
        text = flat(candidate)
        if text not in tried:
            tried.add(text)
            yield candidate


def _candidates(spelled: Iterator[ast.expr], whys: list[str]) -> Iterator[ast.expr]:
    """Yield the candidates of a rule until it raises an error; append its text to `whys`."""
    try:
        yield from spelled
    except (Unwritable, KeyError) as error:
        whys.append(str(error))


def _spelled(rules: Rules[registry.Spelling], view: registry.EquationView) -> Iterator[ast.expr]:
    """Yield the candidates of the rule for an equation, if there is one."""
    rule = rules.of(view.name)
    return rule(view) if rule else iter(())
