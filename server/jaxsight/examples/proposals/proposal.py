"""Proposed example inputs: an example for each parameter, and the sizes in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby

from jaxsight.examples.notation.dtypes import short

Length = int | str
"""A size: a number, or a name that is defined after `where`."""


@dataclass(frozen=True, slots=True)
class ArrayGuess:
    """An array; `dtype` is NumPy's name."""

    shape: tuple[Length, ...]
    dtype: str = "float32"

    @property
    def text(self) -> str:
        return f"{short(self.dtype)}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class KeyGuess:
    """A key, or an array of keys."""

    shape: tuple[Length, ...] = ()

    @property
    def text(self) -> str:
        return f"key<fry>[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class LiteralGuess:
    """A Python literal."""

    text: str


@dataclass(frozen=True, slots=True)
class ExpressionGuess:
    """A Python expression that is evaluated in the module."""

    source: str

    @property
    def text(self) -> str:
        return self.source


@dataclass(frozen=True, slots=True)
class DictGuess:
    """A dict; keys are written as source."""

    items: tuple[tuple[str, ArrayGuess | DictGuess], ...]

    @property
    def text(self) -> str:
        return "{" + ", ".join(f"{key}: {item.text}" for key, item in self.items) + "}"


@dataclass(frozen=True, slots=True)
class ListGuess:
    """A list or a tuple, in most cases of arrays."""

    items: tuple[ArrayGuess | KeyGuess | LiteralGuess | DictGuess | ListGuess, ...]
    is_tuple: bool = False

    @property
    def text(self) -> str:
        inside = ", ".join(item.text for item in self.items)
        if self.is_tuple:
            return f"({inside},)" if len(self.items) == 1 else f"({inside})"
        return f"[{inside}]"


Guess = ArrayGuess | KeyGuess | LiteralGuess | ExpressionGuess | DictGuess | ListGuess


def arrays_in(guess: Guess) -> tuple[ArrayGuess, ...]:
    """Return the arrays of a guess."""
    match guess:
        case ArrayGuess():
            return (guess,)
        case DictGuess(items):
            return tuple(array for _, item in items for array in arrays_in(item))
        case ListGuess(items):
            return tuple(array for item in items for array in arrays_in(item))
    return ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """Example inputs of a function, as the lines of a section."""

    examples: Mapping[str, Guess]
    """By parameter, in the signature's order; `*args` has its star."""
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def lines(self) -> tuple[str, ...]:
        """The section's lines."""
        written: list[str] = []
        for example, group in groupby(self.examples.items(), key=lambda pair: _rest(pair[1])):
            names = [name for name, _ in group]
            if example.startswith(" ="):
                written += [name + example for name in names]
            else:
                written.append(", ".join(names) + example)
        if sizes := self.used_sizes:
            written.append("where " + ", ".join(f"{name}={size}" for name, size in sizes.items()))
        return tuple(written)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def title(self) -> str:
        """The example inputs on one line, with numbers for sizes."""
        numbers = Proposal({name: _numbered(g, self.sizes) for name, g in self.examples.items()})
        return ", ".join(numbers.lines)

    @property
    def used_sizes(self) -> dict[str, int]:
        """The named sizes that occur."""
        names = {
            size
            for guess in self.examples.values()
            for array in arrays_in(guess)
            for size in array.shape
            if isinstance(size, str)
        }
        return {name: size for name, size in self.sizes.items() if name in names}

    def shape(self, array: ArrayGuess) -> tuple[int, ...]:
        """Return a shape in numbers."""
        return tuple(self.sizes[s] if isinstance(s, str) else s for s in array.shape)

    def with_example(self, name: str, guess: Guess) -> Proposal:
        """Return the proposal with another example of one parameter."""
        return replace(self, examples={**self.examples, name: guess})


def _rest(guess: Guess) -> str:
    return f" = {guess.text}" if isinstance(guess, ExpressionGuess) else f": {guess.text}"


def _numbered(guess: Guess, sizes: Mapping[str, int]) -> Guess:
    match guess:
        case ArrayGuess(shape):
            numbers = tuple(sizes[s] if isinstance(s, str) else s for s in shape)
            return replace(guess, shape=numbers)
        case DictGuess(items):
            return DictGuess(tuple((key, _numbered(item, sizes)) for key, item in items))  # type: ignore[misc]
        case ListGuess(items):
            return replace(guess, items=tuple(_numbered(item, sizes) for item in items))  # type: ignore[misc]
    return guess
