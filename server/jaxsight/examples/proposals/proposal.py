"""Proposed example inputs: an example for each parameter, and the sizes in them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby

from jaxsight.examples.notation.values import BY_NAME, short
from jaxsight.text.parsing import literal_in

Length = int | str
"""A size: a number, or a name that is defined after `where`."""

_BY_RANK = {
    1: ("N",),
    2: ("N", "D"),
    3: ("B", "N", "D"),
    4: ("B", "H", "W", "C"),
    5: ("B", "T", "H", "W", "C"),
}
"""How the sizes of arrays are usually called."""
_OTHERS = ("M", "K", "E", "F", "P", "Q", "R", "S", "U", "V", "L", "A", "I", "J")


class Demanded(int):
    """A size that the function demands: it stays a number."""


@dataclass(frozen=True, slots=True)
class ArrayGuess:
    """An array; `dtype` is NumPy's name."""

    shape: tuple[Length, ...]
    dtype: str = "float32"

    @property
    def text(self) -> str:
        return f"{short(self.dtype)}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class LiteralGuess:
    """A Python literal, or another text without sizes."""

    text: str


@dataclass(frozen=True, slots=True)
class ExpressionGuess:
    """A Python expression that is evaluated in the module."""

    text: str


@dataclass(frozen=True, slots=True)
class DictGuess:
    """A dict; keys are written as source."""

    items: tuple[tuple[str, ArrayGuess | DictGuess], ...]

    @property
    def text(self) -> str:
        return "{" + ", ".join(f"{key}: {item.text}" for key, item in self.items) + "}"


Guess = ArrayGuess | LiteralGuess | ExpressionGuess | DictGuess


def arrays_in(guess: Guess) -> tuple[ArrayGuess, ...]:
    """Return the arrays of a guess."""
    match guess:
        case ArrayGuess():
            return (guess,)
        case DictGuess(items):
            return tuple(array for _, item in items for array in arrays_in(item))
    return ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """Example inputs of a function, as the lines of a section."""

    examples: Mapping[str, Guess]
    """By parameter, in the signature's order; `*args` has its star."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    """Names that sizes cannot have."""
    unproved: frozenset[str] = frozenset()
    """The parameters of whose examples the text does not tell a rank or a structure."""

    @property
    def named(self) -> Proposal:
        """The proposal with names for its sizes, except those that the function demands."""
        sizes = self.used_sizes
        found = {number: name for name, number in sizes.items()}
        taken = {*self.parameters, *self.examples, *sizes}
        shapes = [a.shape for guess in self.examples.values() for a in arrays_in(guess)]
        for shape in sorted(shapes, key=len, reverse=True):
            usual = _BY_RANK.get(len(shape), ("B",) * len(shape))
            for size, name in zip(shape, usual, strict=True):
                if isinstance(size, str | Demanded) or size in found or size == 1:
                    continue
                letters = chain((name,), _OTHERS, map("N{}".format, count(1)))
                free = (letter for letter in letters if letter not in taken)
                found[size] = next(free)
                taken.add(found[size])
                sizes[found[size]] = size

        def name_of(size: Length) -> Length:
            return size if isinstance(size, str | Demanded) else found.get(size, size)

        examples = {name: resized(guess, name_of) for name, guess in self.examples.items()}
        return replace(self, examples=examples, sizes=sizes)

    @property
    def lines(self) -> tuple[str, ...]:
        """The section's lines."""
        whole = self.named
        sizes = ", ".join(f"{name}={size}" for name, size in whole.used_sizes.items())
        return (*_lines(whole.examples), *([f"where {sizes}"] if sizes else []))

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def title(self) -> str:
        """The example inputs on one line, with numbers for sizes."""
        return ", ".join(_lines({n: numbered(g, self.sizes) for n, g in self.examples.items()}))

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


def _lines(examples: Mapping[str, Guess]) -> Iterator[str]:
    """Yield a line for each example, or for several parameters that have the same one."""
    written = ((name, isinstance(g, ExpressionGuess), g.text) for name, g in examples.items())
    for (is_expression, text), group in groupby(written, key=lambda line: line[1:]):
        names = [name for name, *_ in group]
        if is_expression:
            yield from (f"{name} = {text}" for name in names)
        else:
            yield f"{', '.join(names)}: {text}"


def numbered(guess: Guess, sizes: Mapping[str, int]) -> Guess:
    """Return a guess with numbers for the names of sizes."""

    return resized(guess, lambda size: sizes[size] if isinstance(size, str) else size)


def resized(guess: Guess, size_of: Callable[[Length], Length]) -> Guess:
    """Return a guess with other sizes of the arrays in it."""
    match guess:
        case ArrayGuess(shape):
            return replace(guess, shape=tuple(map(size_of, shape)))
        case DictGuess(items):
            return DictGuess(tuple((key, resized(item, size_of)) for key, item in items))  # type: ignore[misc]
    return guess


# Data that was not loaded, like the arrays that programs pass to models themselves.
#
# A program often initializes its model with zeros of the shape that its data has.

_TYPE = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,]*)\]")
_LABELS = re.compile(r"y|ys|\w*(?:label|target|class|answer)\w*", re.IGNORECASE)
"""Names of arrays that say for each element of a batch what it is."""
_BATCH = 8
"""The batch size instead of 1, which models are often initialized with, a choice: 1 would be
broadcast, so that mistakes with axes would trace; it divides by 2, 4 and 8 devices."""


def like_fed(proposal: Proposal, fed: tuple[str, ...]) -> Iterator[Proposal]:
    """Yield proposals with an array like one that a model is called with.

    Args:
        proposal: a proposal of the unknown arguments.
        fed: types of arrays, such as `f32[128,784]`.
    """
    leaves = [*_leaves(proposal.examples)]
    inputs = [name for name, _ in leaves if not _LABELS.fullmatch(name.rpartition("/")[2])]
    for typed in filter(None, map(_TYPE.fullmatch, fed)):
        if typed["dtype"] not in BY_NAME:
            continue
        first, *others = map(int, typed["shape"].split(","))
        batch = _BATCH if first == 1 else first
        array = ArrayGuess((batch, *map(Demanded, others)), BY_NAME[typed["dtype"]])
        for chosen in inputs or [name for name, _ in leaves]:
            like = {n: _with(g, n, chosen, array) for n, g in proposal.examples.items()}
            told = {name.partition("/")[0] for name, _ in leaves}
            yield replace(proposal, examples=like, unproved=proposal.unproved - told)


def _leaves(examples: Mapping[str, Guess], above: str = "") -> Iterator[tuple[str, ArrayGuess]]:
    """Yield the arrays of a proposal with their paths, those of the highest rank first."""
    found: list[tuple[str, ArrayGuess]] = []
    for name, guess in examples.items():
        path = f"{above}/{name}" if above else name
        match guess:
            case ArrayGuess():
                found.append((path, guess))
            case DictGuess(items):
                found += _leaves({_key(key): item for key, item in items}, path)
            case _:
                pass
    yield from sorted(found, key=lambda pair: -len(pair[1].shape))


def _key(source: str) -> str:
    with contextlib.suppress(ValueError):
        return str(literal_in(source))
    return source


def _with(guess: Guess, path: str, chosen: str, array: ArrayGuess) -> Guess:
    """Return a guess with `array` at the path `chosen`, and other arrays with its batch."""
    match guess:
        case ArrayGuess() if path == chosen:
            return array
        case ArrayGuess() if _LABELS.fullmatch(path.rpartition("/")[2]):
            return ArrayGuess(array.shape[:1], "int32")
        case ArrayGuess(shape=(_, *others)):
            return replace(guess, shape=(array.shape[0], *others))
        case DictGuess(items):
            changed = ((k, _with(g, f"{path}/{_key(k)}", chosen, array)) for k, g in items)
            return DictGuess(tuple(changed))  # type: ignore[arg-type]
    return guess
