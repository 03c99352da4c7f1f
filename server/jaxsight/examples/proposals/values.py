"""Change the kinds of values of a proposal by its error: objects, lists, dicts, literals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    DictGuess,
    ExpressionGuess,
    ListGuess,
    LiteralGuess,
    Proposal,
)
from jaxsight.examples.proposals.wrong import Wrong

_MOST_ITEMS = 16
_MISSING = re.compile(r"(?:got idx=|string index\w*[^']*|KeyError: |^)'(\w+)'(?! object)")
"""A key that a dict lacks."""


def construction(wrong: Wrong) -> Iterator[Proposal]:
    """Make an object in another way, or pass `None` or an array in its place."""
    if wrong.failure.stage != "inputs":
        return
    for name, guess in wrong.proposal.examples.items():
        if not isinstance(guess, ExpressionGuess) or wrong.failure.argument not in ("", name):
            continue
        kind = wrong.inferred.kinds.get(name, "")
        if kind.startswith("class "):
            for expression in wrong.inferred.known.builder.expressions(kind.removeprefix("class ")):
                yield wrong.having(name, ExpressionGuess(expression))
            yield wrong.having(name, wrong.usual)
            yield wrong.having(name, LiteralGuess("None"))


def attribute(wrong: Wrong) -> Iterator[Proposal]:
    """Pass an object of a class that has the attribute which an array lacks."""
    missing = re.search(r"Tracer'?(?: object)? has no attribute '?(\w+)", wrong.message)
    if missing is None:
        return
    builder = wrong.inferred.known.builder
    for name in wrong.blamed:
        evidence = wrong.inferred.evidence.get(name)
        attributes = {missing.group(1)} | (evidence.attributes if evidence is not None else set())
        for wanted in (attributes, {missing.group(1)}):
            if like := builder.like(name, wanted):
                for expression in builder.expressions(like)[:2]:
                    yield wrong.having(name, ExpressionGuess(expression))


def count(wrong: Wrong) -> Iterator[Proposal]:
    """Pass lists with as many items as are unpacked, and positive numbers."""
    message = wrong.message
    if unpacked := re.search(r"values to unpack \(expected (\d+)", message):
        length = int(unpacked.group(1))
        for name in wrong.blamed:
            guess = wrong.proposal.examples.get(name)
            if isinstance(guess, ListGuess) and 0 < length <= _MOST_ITEMS:
                items = (*guess.items, *[guess.items[-1]] * length)[:length]
                yield wrong.having(name, replace(guess, items=items))
    if re.search(r"(?i)less than or equal|exceed|larger than|too large|greater than", message):
        smaller = {
            n: LiteralGuess(re.sub(r"\d+", "2", g.text))
            for n, g in wrong.proposal.examples.items()
            if isinstance(g, LiteralGuess) and re.fullmatch(r"[\d, ()]+", g.text)
        }
        yield replace(wrong.proposal, examples={**wrong.proposal.examples, **smaller})
    if re.search(r"(?i)negative|positive|must be (?:>|greater|at least)", message):
        negative = {
            n: LiteralGuess("4")
            for n, g in wrong.proposal.examples.items()
            if isinstance(g, LiteralGuess) and g.text == "-1"
        }
        yield replace(wrong.proposal, examples={**wrong.proposal.examples, **negative})


def optional(wrong: Wrong) -> Iterator[Proposal]:
    """Pass a value for a parameter that must not be `None`."""
    guesses = wrong.inferred.optional
    named = [n for n in guesses if re.search(rf"\b{re.escape(n)}\b", wrong.message)]
    if "NoneType" in wrong.message:
        named += [n for n in wrong.blamed if n in guesses]
    arrays = [g for g in wrong.proposal.examples.values() if isinstance(g, ArrayGuess)]
    like = max(arrays, key=lambda g: len(g.shape), default=ArrayGuess((4, 8)))
    for name in dict.fromkeys(named):
        if name not in wrong.proposal.examples:
            yield wrong.having(name, guesses[name])
            if isinstance(guesses[name], ArrayGuess):
                yield wrong.having(name, like)


def nullable(wrong: Wrong) -> Iterator[Proposal]:
    """Pass `None` for the parameters whose annotations allow it."""
    allowed = {
        n: LiteralGuess("None") for n in wrong.inferred.nullable if n in wrong.proposal.examples
    }
    if allowed:
        yield replace(wrong.proposal, examples={**wrong.proposal.examples, **allowed})


def choice(wrong: Wrong) -> Iterator[Proposal]:
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


def options(wrong: Wrong) -> Iterator[Proposal]:
    """Pass another one of the values that the body compares a literal with."""
    if wrong.failure.stage == "inputs" or not wrong.is_a(
        "ValueError", "NotImplementedError", "KeyError", "AssertionError"
    ):
        return
    for name, guess in wrong.proposal.examples.items():
        evidence = wrong.inferred.evidence.get(name)
        if evidence is None or not isinstance(guess, LiteralGuess):
            continue
        is_text = guess.text.startswith("'")
        for other in dict.fromkeys(evidence.choices if is_text else evidence.numbers):
            if other != guess.text:
                yield wrong.having(name, LiteralGuess(other))


def kind(wrong: Wrong) -> Iterator[Proposal]:
    """Pass a dict, a list, a function or a string in place of an array."""
    message = wrong.message
    proposal = wrong.proposal
    usual = wrong.usual
    blamed = [n for n in wrong.blamed if n in proposal.examples] or list(proposal.examples)
    if missing := _MISSING.search(message):
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
    if re.search(
        r"not a valid JAX|as a JAX value|hashable|Value '.*' of type",
        message,
    ):
        for name in blamed:
            if not isinstance(proposal.examples[name], ArrayGuess):
                yield wrong.having(name, usual)
    if re.search(r"expected str|must be str|got .*Tracer|not a string|startswith|'str'", message):
        for name in blamed:
            is_array = isinstance(proposal.examples[name], ArrayGuess)
            if is_array and ("name" in name or message.startswith("expected str")):
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


def fewer(wrong: Wrong) -> Iterator[Proposal]:
    """Pass an array in place of a pytree."""
    dicts = [n for n, g in wrong.proposal.examples.items() if isinstance(g, DictGuess)]
    if re.search(r"unsupported operand|'dict'|bad operand", wrong.message) and dicts:
        leaves = dict.fromkeys(dicts, wrong.usual)
        yield replace(wrong.proposal, examples={**wrong.proposal.examples, **leaves})
    if "structure" in wrong.message:
        for name, listed in wrong.proposal.examples.items():
            if isinstance(listed, ListGuess) and any(
                isinstance(i, DictGuess) for i in listed.items
            ):
                items = tuple(wrong.usual if isinstance(i, DictGuess) else i for i in listed.items)
                yield wrong.having(name, replace(listed, items=items))
    for name in wrong.blamed:
        guess = wrong.proposal.examples.get(name)
        if isinstance(guess, DictGuess) and wrong.is_a("TypeError", "AttributeError"):
            yield wrong.having(name, dict(guess.items).get("'w'", ArrayGuess((4, 8))))
        if isinstance(guess, ListGuess) and wrong.is_a("TypeError", "AttributeError"):
            yield wrong.having(name, guess.items[0])
