"""Change the ranks, sizes and dtypes of a proposal's arrays by its error."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    DictGuess,
    ExpressionGuess,
    Length,
    LiteralGuess,
    Proposal,
    changed,
    resized,
)
from jaxsight.examples.proposals.repairing.errors import Wrong

FRESH = (4, 8, 16, 32, 64, 24)
"""Sizes of new axes, the first of `sizing`: the next error names those that must be equal."""
_HIGHEST_RANK = 6
"""Axes of an array: a choice. Each further one is a trace for shapes that few functions take."""
_LARGEST = 64
"""The largest size of `FRESH`: larger numbers in a message are of other things."""
_TRIANGLE = 6
"""The number of elements in a triangle of a matrix of 3 or 4 rows."""

_RANKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:not enough|too many) values to unpack \(expected (\d+)",
        r"array is \d+-dimensional, but (\d+) were indexed",
        r"(?:expected|must be|must have|should be|requires?)\D{0,40}?(\d)[ -]?(?:D\b|dim|rank)",
        r"ndim of [^,.]{3,30}, got (\d)\b",
        r"(?:rank|ndim|dimension\w*)\D{0,40}?(?:equal to|of|=|==|be|>=|at least)\s*(\d)\b",
        r"have rank (\d)\b",
        r"axis (-?\d+) is out of bounds for array of dimension \d+",
    )
)
_MORE_AXES = re.compile(
    r"tuple index out of range|[Ii]teration over a 0-d|len\(\) of unsized|0-d array"
)
_SHAPES = re.compile(r"\(((?:\d+, ?)*\d*,?)\)")
_OTHER_RANKS = re.compile(r"(?:same|different|equal) (?:number|rank)\w*(?: of dim\w*)?|len\(\(")


def rank(wrong: Wrong) -> Iterator[Proposal]:
    """Give arrays the rank that the message names."""
    message = wrong.message
    found = next((c for pattern in _RANKS if (c := pattern.search(message))), None)
    spec = re.search(r"einsum\(\s*[\"']([^\"']*)[\"']", wrong.expression)
    is_einsum = spec is not None and "subscript" in message
    terms = spec[1].replace(" ", "").partition("->")[0].split(",") if spec and is_einsum else []
    if found is not None:
        number = int(found[1])
        wanted = number + 1 if "axis" in found[0] and number >= 0 else abs(number)
    elif terms and len(terms) == len(wrong.arrays):
        letters = {letter: i for i, letter in enumerate(dict.fromkeys("".join(terms)))}
        pairs = zip(wrong.arrays.items(), terms, strict=True)
        yield wrong.proposal.having(
            {
                name: replace(guess, shape=tuple(FRESH[letters[x] % len(FRESH)] for x in term))
                for (name, guess), term in pairs
            }
        )
        return
    elif term := re.search(r"subscript '(\w+)' does not contain the correct", message):
        wanted = len(term[1])
    elif _MORE_AXES.search(message):
        for name, guess in wrong.arrays.items():
            if len(guess.shape) < _HIGHEST_RANK:
                yield wrong.having(name, _with_rank(wrong, guess, len(guess.shape) + 1))
        return
    else:
        return
    others = {
        name: _with_rank(wrong, guess, wanted)
        for name, guess in (wrong.arrays or wrong.proposal.arrays).items()
        if len(guess.shape) != wanted <= _HIGHEST_RANK
    }
    if len(others) > 1:
        yield from (wrong.having(name, guess) for name, guess in others.items())
    yield wrong.proposal.having(others)


def _with_rank(wrong: Wrong, guess: ArrayGuess, rank: int) -> ArrayGuess:
    """Return an array with axes added before the others, or removed from the front."""
    shape = guess.shape
    if rank <= len(shape):
        return replace(guess, shape=shape[len(shape) - rank :])
    used = set(wrong.proposal.shape(guess))
    fresh = [size for size in (2, *FRESH, 12, 48, 40) if size not in used]
    return replace(guess, shape=(*fresh[: rank - len(shape)], *shape))


def ranks_of_message(wrong: Wrong) -> Iterator[Proposal]:
    """Give arrays the rank of the other shape that the message compares theirs with."""
    shapes = [_numbers(text) for text in _SHAPES.findall(wrong.message)]
    counts = sorted({len(shape) for shape in shapes})
    if not _OTHER_RANKS.search(wrong.message) or len(counts) != 2:
        return
    low, high = counts
    for one, other in ((low, high), (high, low)):
        arrays = {n: g for n, g in wrong.arrays.items() if len(g.shape) == one}
        exact = {n: g for n, g in arrays.items() if list(wrong.proposal.shape(g)) in shapes}
        yield wrong.proposal.having(
            {name: _with_rank(wrong, guess, other) for name, guess in (exact or arrays).items()}
        )
    for name, guess in wrong.arrays.items():
        longer = len(guess.shape) + high - low
        if longer <= _HIGHEST_RANK:
            yield wrong.having(name, _with_rank(wrong, guess, longer))


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number.strip()]


def reshaped(wrong: Wrong) -> Iterator[Proposal]:
    """Give an array as many elements as it is reshaped to, or as a triangle of a matrix has."""
    shapes = [_numbers(text) for text in _SHAPES.findall(wrong.message)]
    if "cannot reshape" in wrong.message and len(shapes) > 1:
        elements, target = math.prod(shapes[0]), math.prod(shapes[1])
        for size in sorted(set(shapes[0]), reverse=True):
            if elements and target and size * target % elements == 0:
                yield _with_size(wrong.proposal, size, size * target // elements)
    if re.search(r"scatter|triang|tril|diagonal", wrong.message):
        for name, guess in (wrong.arrays or wrong.proposal.arrays).items():
            if guess.shape:
                yield wrong.having(name, replace(guess, shape=(*guess.shape[:-1], _TRIANGLE)))


def _with_size(proposal: Proposal, size: int, other: int) -> Proposal:
    """Return a proposal in which all sizes of one number have another one."""
    examples = {
        name: LiteralGuess(str(other))
        if guess == LiteralGuess(str(size))
        else resized(guess, lambda n: other if n == size else n)
        for name, guess in proposal.examples.items()
    }
    sizes = {name: other if number == size else number for name, number in proposal.sizes.items()}
    return replace(proposal, examples=examples, sizes=sizes)


def divisor(wrong: Wrong) -> Iterator[Proposal]:
    """Choose sizes that divide each other: all the same, or large ones."""
    if not re.search(
        r"divisible|multiple of|divide|\(size 0\)|core dimension|square", wrong.message
    ):
        return
    # 8 has the usual divisors, 64 those of heads and groups too.
    yield from (square(wrong.proposal, size) for size in (8, 64))
    for name, guess in (wrong.arrays or wrong.proposal.arrays).items():
        if guess.shape:
            yield wrong.having(name, replace(guess, shape=(*guess.shape[:-1], 64)))


def square(proposal: Proposal, size: int = 8) -> Proposal:
    """Return a proposal with one size for everything."""
    return proposal.having(
        {
            name: replace(guess, shape=(size,) * len(guess.shape))
            for name, guess in proposal.arrays.items()
        }
    )


_PAIRS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\(([\d, ]+)\)[^()]{1,12}\(([\d, ]+)\)",
        r"(\d+) (?:vs\.?|!=|and|but got) (\d+)",
        r"\w\[([\d,]+)\][^\[\]]{1,120}\w\[([\d,]+)\]",
        r"operand \d+ \((\d+)\) does not match previous terms \((\d+)\)",
    )
)


def equal_sizes(wrong: Wrong) -> Iterator[Proposal]:
    """Make the two sizes the same that the message compares; others keep theirs."""
    for pattern in _PAIRS:
        for one, two in pattern.findall(wrong.message)[:2]:
            pairs = zip(reversed(_numbers(one)), reversed(_numbers(two)), strict=False)
            for size, other in pairs:
                if size != other and 1 not in (size, other) and max(size, other) <= _LARGEST:
                    yield _with_size(wrong.proposal, size, other)
                    yield _with_size(wrong.proposal, other, size)


_MISFIT = re.compile(
    r"ncompatible shapes|contracting dim|broadcast|must have same|same shape|"
    r"hapes? (?:must|should|do)|do not match|size mismatch|mismatch|must be equal|cannot reshape|"
    r"leading axis sizes|not equal|does not match|inconsistent|must match|"
    r"must be the same|differing|concatenate|must be (?:a )?scalar|\(scalar\)|"
    r"carry|boolean scalar"
)
_CARRIES: tuple[tuple[Length, ...], ...] = ((), (8,))
_SCALAR = re.compile(
    r"(?i)must be (?:a )?scalar|boolean scalar|rank[- ]?0|\(scalar\)|"
    r"scalar (?:index|value|predicate)"
)


def misfit(wrong: Wrong) -> Iterator[Proposal]:
    """Give the arrays of the failing expression shapes that fit together."""
    if not _MISFIT.search(wrong.message) and not wrong.is_a("AssertionError"):
        return
    arrays, everything = wrong.arrays, wrong.proposal.arrays
    if re.search(r"carry|boolean scalar", wrong.message):
        for shape in _CARRIES:
            yield wrong.proposal.having(
                {
                    name: changed(guess, partial(replace, shape=shape))
                    for name, guess in wrong.proposal.examples.items()
                    if not isinstance(guess, DictGuess)
                }
            )
    if _SCALAR.search(wrong.message):
        yield _all(wrong, arrays, ())
        yield from (wrong.having(n, replace(g, shape=())) for n, g in arrays.items())
    if any(isinstance(guess, DictGuess) for guess in wrong.proposal.examples.values()):
        yield wrong.proposal.having(
            {
                n: ArrayGuess((8,))
                for n, g in wrong.proposal.examples.items()
                if isinstance(g, ArrayGuess | DictGuess)
            }
        )
    for group in (arrays, everything) if len(arrays) < len(everything) else (arrays,):
        if len(group) > 1:
            for leader in sorted(group.values(), key=lambda guess: -len(guess.shape)):
                yield _all(wrong, group, leader.shape)
            yield _all(wrong, list(group)[1:], ())
    for name, guess in arrays.items():
        for shape in ((), guess.shape[-1:], guess.shape[:1], guess.shape[:-1]):
            if guess.shape:
                yield wrong.having(name, replace(guess, shape=shape))
    yield square(wrong.proposal)


def _all(wrong: Wrong, group: Iterable[str], shape: tuple[Length, ...]) -> Proposal:
    return wrong.proposal.having(
        {name: replace(wrong.proposal.arrays[name], shape=shape) for name in group}
    )


_DTYPES = {
    "int32": (
        r"integer or boolean|must be (?:of )?(?:an )?integer|integer (?:type|dtype|array)|"
        r"\bindices\b(?! for operand)|integers?\b.*expected|requires? integer|only integer|"
        r"nvalid integer|with iinfo"
    ),
    "bool": (
        r"bool(?:ean)? (?:type|dtype|predicate|scalar)|must be (?:of )?(?:a )?bool|"
        r"pred(?:icate)?.*bool"
    ),
    "complex64": r"complex",
    "float32": r"inexact|float|real",
}


def dtype(wrong: Wrong) -> Iterator[Proposal]:
    """Give arrays the dtype that the message names."""
    message = wrong.message
    if "equal types" in message:
        for name, array in wrong.arrays.items():
            yield wrong.having(name, LiteralGuess("4"))
            yield wrong.having(name, replace(array, dtype="int32"))
    wanted = next((n for n, said in _DTYPES.items() if re.search(f"(?i){said}", message)), "")
    if not wanted:
        return
    for name, guess in wrong.proposal.examples.items():
        if isinstance(guess, ExpressionGuess) and guess.source.endswith(".float32"):
            source = guess.source.removesuffix("float32")
            yield wrong.having(name, ExpressionGuess(f"{source}{wanted}"))
    for name, array in (wrong.arrays or wrong.proposal.arrays).items():
        if array.dtype != wanted:
            yield wrong.having(name, replace(array, dtype=wanted))
            if "calar" in message:
                yield wrong.having(name, ArrayGuess((), wanted))
