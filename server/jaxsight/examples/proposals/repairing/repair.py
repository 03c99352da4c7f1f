"""Proposals after a first one: by its error, of other ranks, and with more content."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from jaxsight.examples.proposals.inference import Inferred
from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    DictGuess,
    ExpressionGuess,
    Guess,
    KeyGuess,
    LiteralGuess,
    Proposal,
    arrays_in,
    changed,
)
from jaxsight.examples.proposals.repairing import errors, fitting
from jaxsight.examples.proposals.repairing.errors import Wrong

_FIRST = 3
"""Proposals of one kind of repair before those of the next kinds, a choice: with all, one kind
could take up all tries (`trying.MOST_TRIED`)."""
_REPAIRS: tuple[Callable[[Wrong], Iterator[Proposal]], ...] = (
    errors.construction,
    errors.attribute,
    errors.arity,
    errors.static,
    errors.count,
    errors.optional,
    fitting.rank,
    fitting.ranks_of_message,
    fitting.reshaped,
    errors.results,
    fitting.divisor,
    fitting.equal_sizes,
    fitting.misfit,
    errors.choice,
    fitting.dtype,
    errors.key,
    errors.of_kinds,
)


def repaired(wrong: Wrong) -> Iterator[Proposal]:
    """Yield changed proposals, the most likely first."""
    begun = [repair(wrong) for repair in _REPAIRS]
    for proposals in begun:
        yield from islice(proposals, _FIRST)
    for proposals in begun:
        yield from proposals


def variants(inferred: Inferred, proposal: Proposal) -> Iterator[Proposal]:
    """Yield proposals with other ranks of the arrays about whose ranks little is known."""
    certain = {n for n, clues in inferred.clues.items() if clues.uses.shape.find().least > 2}
    free = {n: g for n, g in proposal.arrays.items() if n not in certain}
    for rank in (1, 3, 2, 4, 0):
        yield proposal.having({n: replace(g, shape=fitting.FRESH[:rank]) for n, g in free.items()})


def alternatives(inferred: Inferred, proposal: Proposal) -> Iterator[Proposal]:
    """Yield proposals for errors that say nothing: other ranks, equal sizes, arrays for dicts."""
    yield from variants(inferred, proposal)
    yield fitting.square(proposal)
    dicts = {n: g for n, g in proposal.examples.items() if isinstance(g, DictGuess)}
    yield proposal.having({n: leaf for n, g in dicts.items() for leaf in arrays_in(g)[:1]})
    scalars = list(proposal.arrays.items())[1:]
    yield proposal.having({n: replace(g, shape=()) for n, g in scalars})


def enriched(inferred: Inferred, proposal: Proposal) -> Iterator[Proposal]:
    """Yield proposals for a trace without content: more arguments, other dtypes and choices."""
    examples = proposal.examples
    extras = {
        name: guess
        for name, guess in inferred.optional.items()
        if isinstance(guess, ArrayGuess | DictGuess | KeyGuess) and name not in examples
    }
    if extras:
        yield proposal.having(extras)
    if len(extras) > 1:
        yield from (proposal.having({name: guess}) for name, guess in extras.items())
    flags: dict[str, Guess] = {}
    for name, guess in examples.items():
        match guess:
            case LiteralGuess("True"):
                flags[name] = LiteralGuess("False")
            case LiteralGuess(text) if text.startswith("'") and name in inferred.clues:
                choices = dict.fromkeys(inferred.clues[name].uses.choices)
                others = [choice for choice in choices if choice != text][:2]
                yield from (proposal.having({name: LiteralGuess(c)}) for c in others)
            case ExpressionGuess(source) if re.fullmatch(r"lambda [\w, ]+: \w+", source):
                yield proposal.having({name: ExpressionGuess(f"{source} ** 2")})
            case ExpressionGuess(source) if source.endswith(".float32"):
                yield proposal.having({name: ExpressionGuess(source.replace("32", "16"))})
    if flags:
        yield proposal.having(flags)
    integers = [n for n, g in examples.items() if isinstance(g, LiteralGuess) and g.text in "24"]
    for name in integers[:1]:
        yield proposal.having({name: LiteralGuess("0")})
        yield proposal.having({name: ArrayGuess((), "int32")})
    if inferred.converts_keys:
        trees = {n: g for n, g in examples.items() if isinstance(g, ArrayGuess | DictGuess)}
        yield proposal.having(dict.fromkeys(trees, KeyGuess()))
    arrays = proposal.arrays
    for name, array in list(arrays.items())[: len(arrays) > 1]:
        yield proposal.having({name: replace(array, dtype="int32")})
    for dtype in ("int32", "complex64"):
        of_dtype = partial(replace, dtype=dtype)
        yield proposal.having({n: changed(g, of_dtype) for n, g in examples.items()})
