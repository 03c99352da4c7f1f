"""Writes consecutive equations as one expression: `jnp.mean(x, 0)` for a sum and a division.

A rule is registered for the names of the equations, of which the last computes the only result that
is used afterwards. Its candidates are proved on the whole window before they are used, so the names
alone decide which rules are tried. Nothing outside the window reads a value computed inside it, and
its equations are consecutive, so their order is kept.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxsight_source.compat.jaxpr_types import Atom, Equation, Literal, Var
from jaxsight_source.compat.parameters import has_effects
from jaxsight_source.compat.staging import Program, is_literal
from jaxsight_source.errors import Unwritable
from jaxsight_source.jaxprs.same.values import value_token
from jaxsight_source.text.exprs import slot
from jaxsight_source.values import spelling

LONGEST = 16
"""The maximum number of equations in a window.

The longest pattern without repetition, that of `logsumexp`, has 14. One with `*` may be longer, but
each further equation is tried at every end of a window.
"""

_MOST_KNOWN = 100_000
"""The maximum number of cached sequences of names, of hundreds of texts; then they are dropped."""


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive equations; `inputs` are the outside variables read, in order of first use."""

    equations: tuple[Equation, ...]
    inputs: tuple[Var, ...]
    exact: bool
    """Whether literals are written with their dtype."""

    @property
    def output(self) -> Var:
        return self.equations[-1].outvars[0]

    def expr(self, atom: Atom) -> ast.expr:
        """Return an outside variable or a literal; raise `KeyError` for an inner variable."""
        if not is_literal(atom):
            for index, var in enumerate(self.inputs):
                if var is atom:
                    return slot(index)
            raise KeyError(str(atom))
        return number_of(atom, plain=not self.exact)

    def maker(self, atom: Atom) -> Equation | None:
        """Return the equation of the window that computes a variable, or None."""
        for equation in self.equations:
            if any(var is atom for var in equation.outvars):
                return equation
        return None

    def find(self, *names: str) -> Equation:
        """Return the last equation of one of these primitives, or raise `KeyError`."""
        for equation in reversed(self.equations):
            if equation.primitive.name in names:
                return equation
        raise KeyError(names[0])

    def origin(self, atom: Atom, *through: str) -> Atom:
        """Return the value that the window passed through these primitives to make `atom`."""
        while (equation := self.maker(atom)) is not None and equation.primitive.name in through:
            atom = equation.invars[0]
        return atom

    def operands(self, equation: Equation, *through: str) -> list[ast.expr]:
        """Return the operands of an equation, as they were before these primitives."""
        return [self.expr(self.origin(atom, *through)) for atom in equation.invars]


def number_of(atom: Literal, *, plain: bool) -> ast.expr:
    """Return a literal as a number with its dtype, or as one of Python's with the same bits."""
    value = np.asarray(atom.val).astype(getattr(atom.aval, "dtype", None))
    if plain:
        with contextlib.suppress(Unwritable):
            return spelling.plain(value)
    return spelling.typed(value)


Idiom = Callable[[Window], Iterator[ast.expr]]
"""Yields candidate expressions for a window, the best one first.

It may raise `LookupError`, `ValueError` or `Unwritable` to stop.
"""


class Idioms:
    """Rules by the name of their last equation."""

    def __init__(self) -> None:
        self._rules: dict[str, list[tuple[re.Pattern[str], Idiom, bool]]] = {}
        """For each last name: a pattern of the names, its rule, and whether it is plain."""
        self._alone: set[str] = set()
        self._known: dict[tuple[tuple[str, ...], bool], tuple[Idiom, ...]] = {}
        """A cache of the rules for sequences of names, which long programs repeat."""

    def __call__(self, *patterns: str, plain: bool = False) -> Callable[[Idiom], Idiom]:
        """Register a rule for the names of consecutive equations.

        A pattern is `"convert_element_type? reduce_sum|reduce_max div"`: `?` marks an optional
        name, `*` one that is repeated any number of times, and `|` separates alternatives.

        Args:
            plain: the rule also applies to the plain style, because no simpler public function
                represents these equations.
        """

        def registered(idiom: Idiom) -> Idiom:
            for pattern in patterns:
                # For each word the names with a blank, as often as its mark says.
                words = re.sub(r"([\w|-]+)([?*]?) ?", r"(?:(?:\1) )\2", pattern)
                self._known.clear()
                if pattern.isidentifier():
                    self._alone.add(pattern)
                rule = re.compile(words), idiom, plain
                for word in reversed(pattern.split()):  # the names that a match may end with
                    for last in word.rstrip("?*").split("|"):
                        self._rules.setdefault(last, []).append(rule)
                    if word[-1] not in "?*":
                        break
            return idiom

        return registered

    def of(self, names: Sequence[str], pretty: bool) -> tuple[Idiom, ...]:
        """Return the rules for exactly these equations, in a style."""
        key = (tuple(names), pretty)
        rules = self._known.get(key)
        if rules is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            text = "".join(f"{name} " for name in names)
            rules = self._known[key] = tuple(
                idiom
                for pattern, idiom, plain in self._rules.get(names[-1], ())
                if (pretty or plain) and pattern.fullmatch(text)
            )
        return rules

    def is_alone(self, name: str) -> bool:
        """Return whether there are rules for a single equation.

        Unlike rules of `view`, they see which operands are the same variable.
        """
        return name in self._alone

    def ends(self, name: str, pretty: bool) -> bool:
        """Return whether a window may end with this primitive."""
        return any(pretty or plain for *_, plain in self._rules.get(name, ()))


def find_windows(
    idioms: Idioms,
    equations: Sequence[Equation],
    uses: Mapping[int, int],
    prove: Callable[[Sequence[Window], object], ast.expr | None],
    pretty: bool,
) -> dict[int, tuple[Window, ast.expr]]:
    """Return the windows to write as one expression, with it, by their start; none overlap.

    `uses` counts how often each variable is read, also as a result of the program; `prove` returns
    a window's expression, or None.
    """
    windows: dict[int, tuple[Window, ast.expr]] = {}
    names = [equation.primitive.name for equation in equations]
    stop = len(equations)
    while stop:
        last = equations[stop - 1]
        starts = range(0)
        if idioms.ends(last.primitive.name, pretty) and (
            len(last.outvars) == 1 and not has_effects(last)
        ):
            alone = idioms.is_alone(last.primitive.name)
            starts = range(max(0, stop - LONGEST), stop if alone else stop - 1)
        for start in starts:
            inside = equations[start:stop]
            if not idioms.of(names[start:stop], pretty) or not _closed(inside, uses):
                continue
            inputs = tuple(read_outside(inside).values())
            both = [Window(tuple(inside), inputs, exact) for exact in (False, True)]
            expr = prove(both, window_key(inside, inputs))
            if expr is not None:
                windows[start] = both[0], expr
                stop = start
                break
        else:
            stop -= 1
    return windows


def candidates(idioms: Idioms, window: Window, pretty: bool) -> Iterator[ast.expr]:
    """Yield the candidates of all rules for a window's names, in a style."""
    for idiom in idioms.of([equation.primitive.name for equation in window.equations], pretty):
        try:
            yield from idiom(window)
        except (LookupError, ValueError, Unwritable):
            continue


def _closed(inside: Sequence[Equation], uses: Mapping[int, int]) -> bool:
    """Return whether only the last results are read outside, and all contexts are the same."""
    last = inside[-1]
    read = Counter(
        id(atom) for equation in inside for atom in equation.invars if not is_literal(atom)
    )
    return all(
        not has_effects(equation)
        and (equation.ctx is last.ctx or equation.ctx == last.ctx)
        and all(read[id(var)] == uses.get(id(var), 0) for var in equation.outvars)
        for equation in inside[:-1]
    )


def read_outside(equations: Iterable[Equation]) -> dict[int, Var]:
    """Return the variables that equations read and do not compute, by their ids."""
    inside = list(equations)
    own = {id(var) for equation in inside for var in equation.outvars}
    return {
        id(atom): atom
        for equation in inside
        for atom in equation.invars
        if not is_literal(atom) and id(atom) not in own
    }


def window_key(inside: Sequence[Equation], inputs: Sequence[Var]) -> Hashable:
    """Return a key for consecutive equations, independent of their variables.

    It determines how they are written. Return None if it cannot be hashed.
    """
    number = {id(var): index for index, var in enumerate(inputs)}
    key: list[object] = [tuple(var.aval for var in inputs)]
    for equation in inside:
        operands = tuple(
            (value_token(atom.val), atom.aval) if is_literal(atom) else number[id(atom)]
            for atom in equation.invars
        )
        for var in equation.outvars:
            number[id(var)] = len(number)
        key.append((equation.primitive, tuple(equation.params.items()), operands, equation.ctx))
    return hashable(tuple(key))


def hashable(key: object) -> Hashable:
    """Return a key, or None if it cannot be hashed."""
    try:
        hash(key)
    except TypeError:
        return None
    return key


def program_key(program: Program) -> Hashable:
    """Return a key for a program, independent of its variables.

    Return None for a program with constants, or if the key cannot be hashed.
    """
    jaxpr = program.jaxpr
    if program.consts or jaxpr.constvars:
        return None
    key = window_key(jaxpr.eqns, jaxpr.invars)
    variables = [*jaxpr.invars, *(var for equation in jaxpr.eqns for var in equation.outvars)]
    number = {id(var): index for index, var in enumerate(variables)}
    results = tuple(
        (value_token(atom.val), atom.aval) if is_literal(atom) else number[id(atom)]
        for atom in jaxpr.outvars
    )
    return None if key is None else (key, results)
