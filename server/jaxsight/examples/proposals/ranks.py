"""Change the ranks and sizes of a proposal's arrays by its error."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxsight.examples.proposals.proposal import ArrayGuess, Length, Proposal
from jaxsight.examples.proposals.wrong import Wrong

_FRESH = (4, 8, 16, 32, 64, 24)
_HIGHEST_RANK = 6
_TRIANGLE = 6
"""The number of elements in a triangle of a matrix of 3 or 4 rows."""

_RANKS = (
    re.compile(
        r"(?:expected|must be|must have|should be|requires?)\D{0,40}?(\d)[ -]?(?:D\b|dim|rank)"
    ),
    re.compile(r"ndim of [^,.]{3,30}, got (\d)\b"),
    re.compile(r"(?:rank|ndim|dimension\w*)\D{0,40}?(?:equal to|of|=|==|be|>=|at least)\s*(\d)\b"),
)


def rank(wrong: Wrong) -> Iterator[Proposal]:
    """Give arrays the rank that the message names."""
    message = wrong.message
    if counts := re.search(r"(?:not enough|too many) values to unpack \(expected (\d+)", message):
        wanted = [int(counts.group(1))]
    elif counts := re.search(r"array is (\d+)-dimensional, but (\d+) were indexed", message):
        wanted = [int(counts.group(2))]
    elif counts := next((c for c in (p.search(message) for p in _RANKS) if c is not None), None):
        wanted = [int(counts.group(1))]
    elif counts := re.search(
        r"axis (-?\d+) is out of bounds for array of dimension (\d+)", message
    ):
        axis = int(counts.group(1))
        wanted = [axis + 1 if axis >= 0 else -axis]
    elif (
        "subscript" in message
        and (terms := _terms(wrong.expression))
        and len(terms) == len([*wrong.arrays])
    ):
        yield from _einsum(wrong, terms)
        return
    elif counts := re.search(r"subscript '(\w+)' does not contain the correct", message):
        wanted = [len(counts.group(1))]
    elif re.search(
        r"tuple index out of range|[Ii]teration over a 0-d|len\(\) of unsized|0-d array", message
    ):
        wanted = []
        for name, guess in wrong.arrays:
            if len(guess.shape) < _HIGHEST_RANK:
                yield wrong.having(name, _with_rank(wrong, guess, len(guess.shape) + 1))
    else:
        return
    arrays = list(wrong.arrays) or [
        (n, g) for n, g in wrong.proposal.examples.items() if isinstance(g, ArrayGuess)
    ]
    for count in wanted:
        if count > _HIGHEST_RANK:
            continue
        whole = wrong.proposal
        for name, guess in arrays:
            if len(guess.shape) != count:
                changed = _with_rank(wrong, guess, count)
                whole = whole.with_example(name, changed)
                if len(arrays) > 1:
                    yield wrong.having(name, changed)
        yield whole


def _with_rank(wrong: Wrong, guess: ArrayGuess, rank: int) -> ArrayGuess:
    """Return an array with axes added before the others, or removed from the front."""
    shape = guess.shape
    if rank <= len(shape):
        return replace(guess, shape=shape[len(shape) - rank :])
    used = set(wrong.proposal.shape(guess))
    fresh = [size for size in (2, *_FRESH, 12, 48, 40) if size not in used]
    return replace(guess, shape=(*fresh[: rank - len(shape)], *shape))


def _terms(expression: str) -> list[str]:
    spec = re.search(r"einsum\(\s*[\"']([^\"']*)[\"']", expression)
    return spec.group(1).replace(" ", "").partition("->")[0].split(",") if spec else []


def _einsum(wrong: Wrong, terms: Sequence[str]) -> Iterator[Proposal]:
    names_in_order = [name for name, _ in wrong.arrays]
    if len(names_in_order) != len(terms):
        return
    sizes: dict[str, int] = {}
    proposal = wrong.proposal
    for name, term in zip(names_in_order, terms, strict=True):
        for letter in term:
            sizes.setdefault(letter, _FRESH[len(sizes) % len(_FRESH)])
        guess = proposal.examples[name]
        if isinstance(guess, ArrayGuess):
            shape: tuple[Length, ...] = tuple(sizes[letter] for letter in term)
            proposal = proposal.with_example(name, replace(guess, shape=shape))
    yield proposal


_SHAPES = re.compile(r"\(((?:\d+, ?)*\d*,?)\)")
_OTHER_RANKS = re.compile(r"(?:same|different|equal) (?:number|rank)\w*(?: of dim\w*)?|len\(\(")


def ranks_of_message(wrong: Wrong) -> Iterator[Proposal]:
    """Give arrays the rank of the other shape that the message compares theirs with."""
    if not _OTHER_RANKS.search(wrong.message):
        return
    shapes = [_numbers(text) for text in _SHAPES.findall(wrong.message)]
    counts = sorted({len(shape) for shape in shapes}, reverse=True)
    if len(counts) != 2:
        return
    high, low = counts
    for one, other in ((low, high), (high, low)):
        mistaken = [s for s in shapes if len(s) == one]
        arrays = [(n, g) for n, g in wrong.arrays if len(g.shape) == one]
        exact = [(n, g) for n, g in arrays if list(wrong.proposal.shape(g)) in mistaken]
        whole = wrong.proposal
        for name, guess in exact or arrays:
            whole = whole.with_example(name, _with_rank(wrong, guess, other))
        if whole is not wrong.proposal:
            yield whole
    for name, guess in wrong.arrays:
        longer = len(guess.shape) + high - low
        if longer <= _HIGHEST_RANK:
            yield wrong.having(name, _with_rank(wrong, guess, longer))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number.strip()]


def reshaped(wrong: Wrong) -> Iterator[Proposal]:
    """Give an array as many elements as it is reshaped to."""
    if not re.search(r"cannot reshape", wrong.message):
        return
    shapes = [_numbers(text) for text in _SHAPES.findall(wrong.message)]
    if len(shapes) < 2:
        return
    elements, target = math.prod(shapes[0]), math.prod(shapes[1])
    for size in sorted(set(shapes[0]), reverse=True):
        if elements and target and size * target % elements == 0:
            yield _resized(wrong.proposal, size, size * target // elements)


def triangular(wrong: Wrong) -> Iterator[Proposal]:
    """Give vectors as many elements as the triangle of a matrix has."""
    if not re.search(r"scatter|triang|tril|diagonal", wrong.message):
        return
    examples = wrong.proposal.examples.items()
    for name, guess in list(wrong.arrays) or examples:
        if isinstance(guess, ArrayGuess) and guess.shape:
            yield wrong.having(name, replace(guess, shape=(*guess.shape[:-1], _TRIANGLE)))


def _resized(proposal: Proposal, size: int, other: int) -> Proposal:
    """Return a proposal with other sizes of arrays in the place of one."""
    changed = {
        name: replace(guess, shape=tuple(other if n == size else n for n in guess.shape))
        for name, guess in proposal.examples.items()
        if isinstance(guess, ArrayGuess)
    }
    sizes = {name: other if n == size else n for name, n in proposal.sizes.items()}
    return Proposal({**proposal.examples, **changed}, sizes)
