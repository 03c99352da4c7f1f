"""Change a proposal that could not be traced, by the error and the parameters in its expression.

JAX's messages are those of `jax/_src/core.py`, `errors.py`, `lax/lax.py`, `numpy/indexing.py` and
`numpy/einsum.py` from 0.8 to 0.12. A message that changes only leaves a function without a repair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from jaxsight.examples.proposals import calls, names, ranks, values
from jaxsight.examples.proposals.inference import Inferred
from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    DictGuess,
    ExpressionGuess,
    Guess,
    KeyGuess,
    Length,
    ListGuess,
    LiteralGuess,
    Proposal,
    arrays_in,
)
from jaxsight.examples.proposals.wrong import Wrong

_FRESH = (4, 8, 16, 32, 64, 24)
_HIGHEST_RANK = 6
_FIRST = 3
"""Proposals of one kind of repair before those of the next kinds."""


def repaired(wrong: Wrong) -> Iterator[Proposal]:
    """Yield changed proposals, the most likely first."""
    begun = [repair(wrong) for repair in _REPAIRS]
    for proposals in begun:
        yield from islice(proposals, _FIRST)
    for proposals in begun:
        yield from proposals


def variants(inferred: Inferred, proposal: Proposal) -> Iterator[Proposal]:
    """Yield proposals with other ranks of the arrays about whose ranks little is known."""
    arrays = {n: g for n, g in proposal.examples.items() if isinstance(g, ArrayGuess)}
    free = {n: g for n, g in arrays.items() if not _is_certain(inferred, n)}
    for rank in (1, 3, 2, 4, 0):
        changed = {n: replace(g, shape=_FRESH[:rank]) for n, g in free.items()}
        yield replace(proposal, examples={**proposal.examples, **changed})


def alternatives(inferred: Inferred, proposal: Proposal) -> Iterator[Proposal]:
    """Yield proposals for errors that say nothing: other ranks, equal sizes, arrays for dicts."""
    yield from variants(inferred, proposal)
    arrays = {n: g for n, g in proposal.examples.items() if isinstance(g, ArrayGuess)}
    square = {n: replace(g, shape=(8,) * len(g.shape)) for n, g in arrays.items()}
    yield replace(proposal, examples={**proposal.examples, **square})
    dicts = {n: g for n, g in proposal.examples.items() if isinstance(g, DictGuess)}
    leaves = {n: leaf for n, g in dicts.items() for leaf in arrays_in(g)[:1]}
    yield replace(proposal, examples={**proposal.examples, **leaves})
    changed = {n: replace(g, shape=()) for n, g in list(arrays.items())[1:]}
    yield replace(proposal, examples={**proposal.examples, **changed})


def enriched(inferred: Inferred, proposal: Proposal) -> Iterator[Proposal]:
    """Yield proposals for a trace without content: more arguments, other dtypes and choices."""
    examples = proposal.examples
    arrays = {
        name: guess
        for name, guess in inferred.optional.items()
        if isinstance(guess, ArrayGuess | DictGuess | KeyGuess) and name not in examples
    }
    if arrays:
        yield replace(proposal, examples={**examples, **arrays})
    if len(arrays) > 1:
        for name, array in arrays.items():
            yield proposal.with_example(name, array)
    others: dict[str, Guess] = {}
    for name, guess in examples.items():
        match guess:
            case LiteralGuess("True"):
                others[name] = LiteralGuess("False")
            case LiteralGuess(text) if text.startswith("'"):
                evidence = inferred.evidence.get(name)
                choices = dict.fromkeys(evidence.choices) if evidence is not None else ()
                yield from (
                    proposal.with_example(name, LiteralGuess(choice))
                    for choice in [c for c in choices if c != text][:2]
                )
            case ExpressionGuess(source) if re.fullmatch(r"lambda [\w, ]+: \w+", source):
                yield proposal.with_example(name, ExpressionGuess(f"{source} ** 2"))
            case ExpressionGuess(source) if source.endswith(".float32"):
                yield proposal.with_example(name, ExpressionGuess(source.replace("32", "16")))
    if others:
        yield replace(proposal, examples={**examples, **others})
    integers = [n for n, g in examples.items() if isinstance(g, LiteralGuess) and g.text in "24"]
    for name in integers[:1]:
        yield proposal.with_example(name, LiteralGuess("0"))
        yield proposal.with_example(name, ArrayGuess((), "int32"))
    if inferred.converts_keys:
        yield replace(proposal, examples={n: _key(g) for n, g in examples.items()})
    leading = [n for n, g in examples.items() if isinstance(g, ArrayGuess)]
    if len(leading) > 1:
        first = examples[leading[0]]
        yield proposal.with_example(leading[0], _of_dtype(first, "int32"))
    for dtype in ("int32", "complex64"):
        changed = {n: _of_dtype(g, dtype) for n, g in examples.items()}
        yield replace(proposal, examples=changed)


def _of_dtype(guess: Guess, dtype: str) -> Guess:
    match guess:
        case ArrayGuess():
            return replace(guess, dtype=dtype)
        case DictGuess(items):
            return DictGuess(tuple((key, _of_dtype(item, dtype)) for key, item in items))  # type: ignore[misc]
    return guess


def _key(guess: Guess) -> Guess:
    return KeyGuess() if isinstance(guess, ArrayGuess | DictGuess) else guess


def _is_certain(inferred: Inferred, name: str) -> bool:
    evidence = inferred.evidence.get(name.lstrip("*"))
    return evidence is not None and evidence.shape.find().least > 2


# Values that must be known


def _static(wrong: Wrong) -> Iterator[Proposal]:
    """Pass a value that must be known while tracing as a literal."""
    if not wrong.is_a(
        "ConcretizationTypeError",
        "TracerIntegerConversionError",
        "TracerArrayConversionError",
        "TracerBoolConversionError",
        "NonConcreteBooleanIndexError",
        "UnexpectedTracerError",
    ) and not re.search(
        r"interpreted as an integer|1D sequences of concrete|unhashable|truth value of an array|"
        r"Only scalar arrays",
        wrong.message,
    ):
        return
    said = re.findall(
        r"\b([A-Za-z_]\w*)(?:\[[^\]]*\])?(?=, and |, | and |\.\s|\.$|$)", _culprits(wrong.message)
    )
    blamed = [n for n in dict.fromkeys((*said, *wrong.blamed)) if n in wrong.proposal.examples]
    integer = wrong.is_a("TracerIntegerConversionError") or re.search(
        r"interpreted as an integer|1D sequences", wrong.message
    )
    whole = wrong.proposal
    for name in sorted(blamed, key=lambda n: not isinstance(whole.examples[n], ListGuess)):
        guess = wrong.proposal.examples[name]
        if isinstance(guess, ListGuess):
            numbers = ", ".join(("8", "4")[i % 2] for i in range(len(guess.items)))
            comma = "," if len(guess.items) == 1 else ""
            yield wrong.having(name, LiteralGuess(f"({numbers}{comma})"))
        if not isinstance(guess, ArrayGuess | DictGuess):
            continue
        static = _static_guess(wrong, name, guess, is_integer=bool(integer))
        yield wrong.having(name, static)
        whole = whole.with_example(name, static)
    if len(blamed) > 1:
        yield whole
    for name in blamed:
        if isinstance(wrong.proposal.examples[name], ArrayGuess):
            yield wrong.having(name, LiteralGuess("2"))
            yield wrong.having(name, LiteralGuess("(4, 8)"))


def _culprits(message: str) -> str:
    listed = re.search(r"depends on the values? of the arguments? ([^\n]*?\.)(?=\s|$)", message)
    return listed.group(1) if listed else ""


def _static_guess(wrong: Wrong, name: str, guess: Guess, *, is_integer: bool) -> Guess:
    if names.SHAPE.fullmatch(name):
        return LiteralGuess("(4, 8)")
    if names.AXIS.fullmatch(name):
        return LiteralGuess("-1")
    if names.BOOLEAN.fullmatch(name):
        return LiteralGuess("True")
    if isinstance(guess, ArrayGuess) and guess.dtype == "bool":
        return LiteralGuess("True")
    if (
        is_integer
        or names.COUNT.fullmatch(name)
        or (isinstance(guess, ArrayGuess) and guess.dtype.startswith("int"))
    ):
        return LiteralGuess("2")
    return LiteralGuess("0.5")


# Shapes that do not fit


_MISFIT = re.compile(
    r"ncompatible shapes|contracting dim|broadcast|must have same|same shape|"
    r"hapes? (?:must|should|do)|do not match|size mismatch|mismatch|must be equal|cannot reshape|"
    r"leading axis sizes|not equal|does not match|inconsistent|must match|"
    r"must be the same|differing|concatenate|must be (?:a )?scalar|\(scalar\)|"
    r"carry|boolean scalar"
)


def _misfit(wrong: Wrong) -> Iterator[Proposal]:
    """Arrays of the failing expression do not fit together."""
    if not _MISFIT.search(wrong.message) and not wrong.is_a("AssertionError"):
        return
    arrays = list(wrong.arrays)
    everything = [(n, g) for n, g in wrong.proposal.examples.items() if isinstance(g, ArrayGuess)]
    if re.search(r"carry|boolean scalar", wrong.message):
        for shape in ((), (8,)):
            same = {n: _of_shape(g, shape) for n, g in wrong.proposal.examples.items()}
            yield replace(wrong.proposal, examples=same)
    if re.search(
        r"(?i)must be (?:a )?scalar|boolean scalar|rank[- ]?0|\(scalar\)|"
        r"scalar (?:index|value|predicate)",
        wrong.message,
    ):
        if len(arrays) > 1:
            yield _all_like(wrong.proposal, arrays, ArrayGuess(()))
        for name, guess in arrays:
            yield wrong.having(name, replace(guess, shape=()))
    if any(isinstance(guess, DictGuess) for guess in wrong.proposal.examples.values()):
        vectors = {
            n: ArrayGuess((8,))
            for n, g in wrong.proposal.examples.items()
            if isinstance(g, ArrayGuess | DictGuess)
        }
        yield replace(wrong.proposal, examples={**wrong.proposal.examples, **vectors})
    for group in (arrays, everything) if len(arrays) < len(everything) else (arrays,):
        if len(group) > 1:
            for _, leader in sorted(group, key=lambda pair: -len(pair[1].shape)):
                yield _all_like(wrong.proposal, group, leader)
            others = group[1:]
            yield _all_like(wrong.proposal, others, ArrayGuess(()))
    for name, guess in arrays:
        if guess.shape:
            yield wrong.having(name, replace(guess, shape=()))
            yield wrong.having(name, replace(guess, shape=guess.shape[-1:]))
            yield wrong.having(name, replace(guess, shape=guess.shape[:1]))
            yield wrong.having(name, replace(guess, shape=guess.shape[:-1]))
    square = {n: replace(g, shape=(8,) * len(g.shape)) for n, g in everything}
    yield replace(wrong.proposal, examples={**wrong.proposal.examples, **square})


def _of_shape(guess: Guess, shape: tuple[Length, ...]) -> Guess:
    match guess:
        case ArrayGuess():
            return replace(guess, shape=shape)
        case ListGuess(items):
            return replace(guess, items=tuple(_of_shape(item, shape) for item in items))  # type: ignore[misc]
    return guess


def _all_like(
    proposal: Proposal, group: Sequence[tuple[str, ArrayGuess]], leader: ArrayGuess
) -> Proposal:
    changed = {name: replace(guess, shape=leader.shape) for name, guess in group}
    return replace(proposal, examples={**proposal.examples, **changed})


_LARGEST = 64
_PAIRS = (
    re.compile(r"\(([\d, ]+)\)[^()]{1,12}\(([\d, ]+)\)"),
    re.compile(r"(\d+) (?:vs\.?|!=|and|but got) (\d+)"),
    re.compile(r"\w\[([\d,]+)\][^\[\]]{1,120}\w\[([\d,]+)\]"),
    re.compile(r"operand \d+ \((\d+)\) does not match previous terms \((\d+)\)"),
)


def _equal_sizes(wrong: Wrong) -> Iterator[Proposal]:
    """Make the two sizes the same that the message compares; others keep theirs."""
    for pattern in _PAIRS:
        for one, two in pattern.findall(wrong.message)[:2]:
            first, second = ([int(n) for n in text.split(",") if n.strip()] for text in (one, two))
            for size, other in zip(reversed(first), reversed(second), strict=False):
                if size != other and 1 not in (size, other) and max(size, other) <= _LARGEST:
                    yield _with_size(wrong.proposal, size, other)
                    yield _with_size(wrong.proposal, other, size)


def _with_size(proposal: Proposal, size: int, other: int) -> Proposal:
    """Return a proposal in which all sizes of one number have another one."""

    def changed(guess: Guess) -> Guess:
        match guess:
            case ArrayGuess(shape):
                return replace(guess, shape=tuple(other if n == size else n for n in shape))
            case DictGuess(items):
                return DictGuess(tuple((key, changed(item)) for key, item in items))  # type: ignore[misc]
            case LiteralGuess(text) if text == str(size):
                return LiteralGuess(str(other))
            case ListGuess(items):
                return replace(guess, items=tuple(changed(item) for item in items))  # type: ignore[misc]
        return guess

    return Proposal(
        {name: changed(guess) for name, guess in proposal.examples.items()},
        {name: other if number == size else number for name, number in proposal.sizes.items()},
    )


def _divisor(wrong: Wrong) -> Iterator[Proposal]:
    """Choose sizes that divide each other: all the same, or large ones."""
    if not re.search(
        r"divisible|multiple of|divide|\(size 0\)|core dimension|square", wrong.message
    ):
        return
    for size in (8, 64):
        changed: dict[str, Guess] = {
            name: replace(guess, shape=(size,) * len(guess.shape))
            for name, guess in wrong.proposal.examples.items()
            if isinstance(guess, ArrayGuess)
        }
        yield replace(wrong.proposal, examples={**wrong.proposal.examples, **changed})
    leaders = [n for n, _ in wrong.arrays] or list(wrong.proposal.examples)
    for name in leaders:
        guess = wrong.proposal.examples[name]
        if isinstance(guess, ArrayGuess) and guess.shape:
            yield wrong.having(name, replace(guess, shape=(*guess.shape[:-1], 64)))


# Dtypes


def _dtype(wrong: Wrong) -> Iterator[Proposal]:
    message = wrong.message
    if re.search(r"(?i)\bkey\b.*(?:prng|random|dtype|expected)|PRNG", message):
        for name in dict.fromkeys((*wrong.blamed, *wrong.proposal.examples)):
            if isinstance(wrong.proposal.examples.get(name), ArrayGuess) and (
                names.KEY.fullmatch(name) or name in wrong.blamed
            ):
                yield wrong.having(name, KeyGuess())
    if re.search(r"key<|typed PRNG key|key types", message):
        for name, guess in wrong.proposal.examples.items():
            if isinstance(guess, KeyGuess) and (name in wrong.blamed or "key<" in message):
                yield wrong.having(name, wrong.usual)
    if re.search(r"(?i)not compatible with finfo|floating|inexact|must have equal types", message):
        for name, guess in wrong.proposal.examples.items():
            if isinstance(guess, LiteralGuess) and re.fullmatch(r"\d+", guess.text):
                yield wrong.having(name, ArrayGuess((), "float32"))
    if "equal types" in message:
        for name, array in wrong.arrays:
            yield wrong.having(name, LiteralGuess("4"))
            yield wrong.having(name, replace(array, dtype="int32"))
    wanted = ""
    if re.search(
        r"(?i)integer or boolean|must be (?:of )?(?:an )?integer|integer (?:type|dtype|array)|"
        r"\bindices\b(?! for operand)|integers?\b.*expected|requires? integer|only integer|"
        r"nvalid integer|with iinfo",
        message,
    ):
        wanted = "int32"
    elif re.search(
        r"(?i)bool(?:ean)? (?:type|dtype|predicate|scalar)|must be (?:of )?(?:a )?bool|"
        r"pred(?:icate)?.*bool",
        message,
    ):
        wanted = "bool"
    elif re.search(r"(?i)complex", message):
        wanted = "complex64"
    elif re.search(r"(?i)inexact|float|real", message):
        wanted = "float32"
    if not wanted:
        return
    for name, expression in wrong.proposal.examples.items():
        if isinstance(expression, ExpressionGuess) and wanted != "float32":
            source, dot, dtype = expression.source.rpartition(".")
            if dot and dtype == "float32":
                yield wrong.having(name, ExpressionGuess(f"{source}.{wanted}"))
    for name, guess in list(wrong.arrays) or [
        (n, g) for n, g in wrong.proposal.examples.items() if isinstance(g, ArrayGuess)
    ]:
        if guess.dtype != wanted:
            yield wrong.having(name, replace(guess, dtype=wanted))
            if "calar" in message:
                yield wrong.having(name, ArrayGuess((), wanted))


_REPAIRS: tuple[Callable[[Wrong], Iterator[Proposal]], ...] = (
    values.construction,
    values.attribute,
    calls.arity,
    _static,
    calls.scalar_result,
    values.count,
    calls.pair_result,
    values.optional,
    values.nullable,
    ranks.rank,
    ranks.ranks_of_message,
    ranks.reshaped,
    ranks.triangular,
    calls.carry_result,
    _divisor,
    _equal_sizes,
    _misfit,
    values.choice,
    values.options,
    _dtype,
    values.kind,
    values.fewer,
)
