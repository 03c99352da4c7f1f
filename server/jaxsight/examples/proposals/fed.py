"""Data that was not loaded, like the arrays that programs pass to models themselves.

A program often initializes its model with zeros of the shape that its data has.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from jaxsight.examples.notation.dtypes import BY_NAME
from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    Demanded,
    DictGuess,
    Guess,
    Proposal,
)
from jaxsight.text.parsing import literal_in

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
