"""Change a proposal that could not be traced, by the error and the parameters in its expression.

JAX's messages are those of `jax/_src/core.py`, `errors.py`, `lax/lax.py`, `numpy/indexing.py` and
`numpy/einsum.py` from 0.8 to 0.12. A message that changes only leaves a function without a repair.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxsight.examples.proposals import names
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
from jaxsight.wire.observations import Failure

_FRESH = (4, 8, 16, 32, 64, 24)
_HIGHEST_RANK = 6


@dataclass(frozen=True, slots=True)
class Wrong:
    """A proposal that could not be traced, and why.

    `blamed` are the parameters that the failing expression uses, directly or through variables.
    """

    inferred: Inferred
    proposal: Proposal
    failure: Failure
    blamed: tuple[str, ...]
    expression: str

    @property
    def message(self) -> str:
        return self.failure.message

    @property
    def arrays(self) -> Iterator[tuple[str, ArrayGuess]]:
        """The blamed parameters that are arrays."""
        for name in self.blamed:
            guess = self.proposal.examples.get(name)
            if isinstance(guess, ArrayGuess):
                yield name, guess

    def is_a(self, *types: str) -> bool:
        """Return whether the exception or a base of it has one of these names."""
        kinds = {self.failure.type, *self.failure.bases}
        return any(name.rpartition(".")[2] in types for name in kinds)

    def having(self, name: str, guess: Guess) -> Proposal:
        """Return the proposal with another example."""
        return self.proposal.with_example(name, guess)


def repaired(wrong: Wrong) -> Iterator[Proposal]:
    """Yield changed proposals, the most likely first."""
    for repair in _REPAIRS:
        yield from repair(wrong)


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
    for name in blamed:
        guess = wrong.proposal.examples[name]
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


# Ranks


def _rank(wrong: Wrong) -> Iterator[Proposal]:
    """Give arrays the rank that the message names."""
    message = wrong.message
    if counts := re.search(r"(?:not enough|too many) values to unpack \(expected (\d+)", message):
        ranks = [int(counts.group(1))]
    elif counts := re.search(r"array is (\d+)-dimensional, but (\d+) were indexed", message):
        ranks = [int(counts.group(2))]
    elif (
        counts := re.search(
            r"(?:expected|must be|must have|should be|requires?)\D{0,40}?(\d)[ -]?(?:D\b|dim|rank)",
            message,
        )
    ) or (
        counts := re.search(
            r"(?:rank|ndim|dimension\w*)\D{0,40}?(?:equal to|of|=|==|be|>=|at least)\s*(\d)\b",
            message,
        )
    ):
        ranks = [int(counts.group(1))]
    elif counts := re.search(
        r"axis (-?\d+) is out of bounds for array of dimension (\d+)", message
    ):
        axis = int(counts.group(1))
        ranks = [axis + 1 if axis >= 0 else -axis]
    elif "subscript" in message and (terms := _terms(wrong.expression)):
        yield from _einsum(wrong, terms)
        return
    elif re.search(
        r"tuple index out of range|[Ii]teration over a 0-d|len\(\) of unsized|0-d array", message
    ):
        ranks = []
        for name, guess in wrong.arrays:
            yield wrong.having(name, _with_rank(wrong, guess, len(guess.shape) + 1))
    else:
        return
    arrays = list(wrong.arrays) or [
        (n, g) for n, g in wrong.proposal.examples.items() if isinstance(g, ArrayGuess)
    ]
    for rank in ranks:
        if rank > _HIGHEST_RANK:
            continue
        whole = wrong.proposal
        for name, guess in arrays:
            if len(guess.shape) != rank:
                changed = _with_rank(wrong, guess, rank)
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


# Shapes that do not fit


_MISFIT = re.compile(
    r"ncompatible shapes|contracting dim|broadcast|must have same|same shape|"
    r"hapes? (?:must|should|do)|size mismatch|mismatch|must be equal|cannot reshape|"
    r"leading axis sizes|not equal|does not match|inconsistent|must match|"
    r"must be the same|differing|concatenate|must be (?:a )?scalar|\(scalar\)"
)


def _misfit(wrong: Wrong) -> Iterator[Proposal]:
    """Arrays of the failing expression do not fit together."""
    if not _MISFIT.search(wrong.message) and not wrong.is_a("AssertionError"):
        return
    arrays = list(wrong.arrays)
    if re.search(
        r"(?i)must be (?:a )?scalar|rank[- ]?0|\(scalar\)|scalar (?:index|value|predicate)",
        wrong.message,
    ):
        for name, guess in arrays:
            yield wrong.having(name, replace(guess, shape=()))
    everything = [(n, g) for n, g in wrong.proposal.examples.items() if isinstance(g, ArrayGuess)]
    for group in (arrays, everything) if len(arrays) < len(everything) else (arrays,):
        if len(group) > 1:
            for _, leader in sorted(group, key=lambda pair: -len(pair[1].shape)):
                yield _all_like(wrong.proposal, group, leader)
    for name, guess in arrays:
        if guess.shape:
            yield wrong.having(name, replace(guess, shape=()))
            yield wrong.having(name, replace(guess, shape=guess.shape[-1:]))
            yield wrong.having(name, replace(guess, shape=guess.shape[:1]))
            yield wrong.having(name, replace(guess, shape=guess.shape[:-1]))
    square = {n: replace(g, shape=(8,) * len(g.shape)) for n, g in everything}
    yield replace(wrong.proposal, examples={**wrong.proposal.examples, **square})


def _all_like(
    proposal: Proposal, group: Sequence[tuple[str, ArrayGuess]], leader: ArrayGuess
) -> Proposal:
    changed = {name: replace(guess, shape=leader.shape) for name, guess in group}
    return replace(proposal, examples={**proposal.examples, **changed})


# Dtypes


def _dtype(wrong: Wrong) -> Iterator[Proposal]:
    message = wrong.message
    if re.search(r"(?i)\bkey\b.*(?:prng|random|dtype|expected)|PRNG", message):
        for name in dict.fromkeys((*wrong.blamed, *wrong.proposal.examples)):
            if isinstance(wrong.proposal.examples.get(name), ArrayGuess) and (
                names.KEY.fullmatch(name) or name in wrong.blamed
            ):
                yield wrong.having(name, KeyGuess())
    wanted = ""
    if re.search(
        r"(?i)integer or boolean|must be (?:of )?(?:an )?integer|integer (?:type|dtype|array)|"
        r"indices|integers?\b.*expected|requires? integer|only integer",
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
    for name, guess in list(wrong.arrays) or [
        (n, g) for n, g in wrong.proposal.examples.items() if isinstance(g, ArrayGuess)
    ]:
        if guess.dtype != wanted:
            yield wrong.having(name, replace(guess, dtype=wanted))
            if "calar" in message:
                yield wrong.having(name, ArrayGuess((), wanted))


# Other kinds of values


def _choice(wrong: Wrong) -> Iterator[Proposal]:
    """Pass the first of the strings that the message lists."""
    rejected = re.search(
        r"(?:one of|[Mm]ust be|expected|supported|[Vv]alid|options?|either)[^'\"]{0,60}"
        r"(['\"])([\w.-]{1,30})\1",
        wrong.message,
    )
    if rejected is None:
        return
    for name in dict.fromkeys((*wrong.blamed, *wrong.proposal.examples)):
        guess = wrong.proposal.examples.get(name)
        is_text = isinstance(guess, LiteralGuess) and guess.text.startswith("'")
        if is_text or name in wrong.message:
            yield wrong.having(name, LiteralGuess(repr(rejected.group(2))))


def _kind(wrong: Wrong) -> Iterator[Proposal]:
    """Pass a dict, a list, a function or a string in place of an array."""
    message = wrong.message
    proposal = wrong.proposal
    usual = next(
        (g for g in proposal.examples.values() if isinstance(g, ArrayGuess)), ArrayGuess((4, 8))
    )
    blamed = [n for n in wrong.blamed if n in proposal.examples] or list(proposal.examples)
    if missing := re.search(r"(?:got idx=|string index\w*[^']*|KeyError: |^)'(\w+)'", message):
        for name in blamed:
            guess = proposal.examples[name]
            if isinstance(guess, ArrayGuess | DictGuess):
                items = guess.items if isinstance(guess, DictGuess) else ()
                key = repr(missing.group(1))
                yield wrong.having(name, DictGuess((*items, (key, usual))))
    if re.search(r"not callable", message):
        for name in blamed:
            yield wrong.having(name, ExpressionGuess("lambda *args: args[0]"))
    if re.search(r"no attribute '(?:items|keys|values|get)'", message):
        for name in blamed:
            yield wrong.having(name, DictGuess((("'w'", usual), ("'b'", usual))))
    if "positional argument" in message or "unexpected keyword" in message:
        any_call = ExpressionGuess("lambda *args, **kwargs: args[0]")
        lambdas = {n: any_call for n, g in proposal.examples.items() if _is_lambda(g)}
        yield replace(proposal, examples={**proposal.examples, **lambdas})
    if re.search(
        r"is not a valid JAX|not a valid JAX array type|hashable|Value '.*' of type", message
    ):
        for name in blamed:
            if not isinstance(proposal.examples[name], ArrayGuess):
                yield wrong.having(name, usual)
    if re.search(r"expected str|must be str|got .*Tracer|not a string|startswith|'str'", message):
        for name in blamed:
            if isinstance(proposal.examples[name], ArrayGuess) and "name" in name:
                yield wrong.having(name, LiteralGuess("'name'"))
    if re.search(r"structure|pytree|sequence|iterable|list|tuple", message):
        for name in blamed:
            match proposal.examples[name]:
                case DictGuess():
                    yield wrong.having(name, usual)
                case ArrayGuess() as array:
                    yield wrong.having(name, ListGuess((array, array)))
                case ListGuess(arrays):
                    yield wrong.having(name, arrays[0])


def _is_lambda(guess: Guess) -> bool:
    return isinstance(guess, ExpressionGuess) and guess.source.startswith("lambda")


def _scalar_result(wrong: Wrong) -> Iterator[Proposal]:
    """Return a scalar from a function that is differentiated."""
    if "scalar-output" in wrong.message or "Gradient only defined" in wrong.message:
        for name, guess in wrong.proposal.examples.items():
            if _is_lambda(guess):
                yield wrong.having(name, ExpressionGuess("lambda *args: (args[0] ** 2).sum()"))


def _fewer(wrong: Wrong) -> Iterator[Proposal]:
    """Pass an array in place of a pytree."""
    for name in wrong.blamed:
        guess = wrong.proposal.examples.get(name)
        if isinstance(guess, DictGuess) and wrong.is_a("TypeError", "AttributeError"):
            yield wrong.having(name, dict(guess.items).get("'w'", ArrayGuess((4, 8))))
        if isinstance(guess, ListGuess) and wrong.is_a("TypeError", "AttributeError"):
            yield wrong.having(name, guess.items[0])


def _optional(wrong: Wrong) -> Iterator[Proposal]:
    """Pass an array for a parameter that must not be `None`."""
    said = [n for n in wrong.inferred.optional if re.search(rf"\b{re.escape(n)}\b", wrong.message)]
    if "NoneType" in wrong.message:
        said += [n for n in wrong.blamed if n in wrong.inferred.optional]
    arrays = [g for g in wrong.proposal.examples.values() if isinstance(g, ArrayGuess)]
    like = max(arrays, key=lambda g: len(g.shape), default=ArrayGuess((4, 8)))
    for name in dict.fromkeys(said):
        if name not in wrong.proposal.examples:
            guess: Guess = KeyGuess() if names.KEY.fullmatch(name) else like
            yield wrong.having(name, guess)


_REPAIRS: tuple[Callable[[Wrong], Iterator[Proposal]], ...] = (
    _static,
    _scalar_result,
    _rank,
    _optional,
    _misfit,
    _choice,
    _dtype,
    _kind,
    _fewer,
)
