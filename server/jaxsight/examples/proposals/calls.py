"""Change the functions of a proposal by its error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from jaxsight.examples.proposals.functions import written
from jaxsight.examples.proposals.proposal import ExpressionGuess, Guess, Proposal
from jaxsight.examples.proposals.wrong import Wrong, is_lambda

_HEAD = re.compile(r"lambda ?([\w, ]*): (.*)", re.DOTALL)
_MOST = 12
_UNPACKED = re.compile(
    r"unpack non-iterable|iteration over a 0-d|has_aux|\bpair\b|(?:length|len) 2|2-tuple|scan body"
)


def arity(wrong: Wrong) -> Iterator[Proposal]:
    """Take as many arguments as a function is called with."""
    message = wrong.message
    lambdas = {n: g for n, g in wrong.proposal.examples.items() if is_lambda(g)}
    passed = -1
    if numbers := re.search(r"takes (\d+) positional arguments? but (\d+)", message):
        passed = int(numbers.group(2))
        lambdas = {n: g for n, g in lambdas.items() if len(_taken(g)) == int(numbers.group(1))}
    elif "positional argument" in message and "missing" in message:
        missing = re.findall(r"'(\w+)'", message.partition("missing")[2])
        lambdas = {n: g for n, g in lambdas.items() if {*missing} <= {*_taken(g)}}
        passed = max((len(_taken(g)) for g in lambdas.values()), default=0) - len(missing)
    elif "unexpected keyword" not in message:
        return
    if 0 <= passed <= _MOST and "<lambda>" in message:
        for name, guess in lambdas.items():
            old = _taken(guess)
            parameters = [*old, *(f"x{i}" for i in range(len(old), passed))][:passed]
            body = _HEAD.match(guess.text)
            is_pair = body is not None and body.group(2).startswith("(") and "," in body.group(2)
            count = 2 if is_pair else 0
            changed = written(parameters, count=count, is_scalar="** 2" in guess.text)
            if not parameters:
                changed = f"lambda: {_value(wrong)}"
            yield wrong.having(name, ExpressionGuess(changed))
    any_call = ExpressionGuess("lambda *args, **kwargs: args[0]")
    if lambdas:
        yield replace(
            wrong.proposal, examples={**wrong.proposal.examples, **dict.fromkeys(lambdas, any_call)}
        )


def _value(wrong: Wrong) -> str:
    """Return an expression of an array, or of a number."""
    numpy = wrong.inferred.known.module("jax.numpy", "numpy")
    shape = wrong.proposal.shape(wrong.usual)
    return f"{numpy}.ones({shape})" if numpy else "0.0"


def _taken(guess: Guess) -> list[str]:
    head = _HEAD.match(guess.text)
    return [p.strip() for p in head.group(1).split(",") if p.strip()] if head else []


def scalar_result(wrong: Wrong) -> Iterator[Proposal]:
    """Return a scalar from a function that is differentiated."""
    if re.search(
        r"scalar-output|Gradient only defined|"
        r"must (?:be|return|output) a (?:single )?(?:[\w-]+ )?scalar",
        wrong.message,
    ):
        for name, guess in wrong.proposal.examples.items():
            if is_lambda(guess):
                yield wrong.having(name, ExpressionGuess("lambda *args: (args[0] ** 2).sum()"))


def carry_result(wrong: Wrong) -> Iterator[Proposal]:
    """Return another argument from a function whose result is a carry."""
    if "carry" not in wrong.message:
        return
    for name, guess in wrong.proposal.examples.items():
        parameters = _taken(guess) if is_lambda(guess) else []
        if len(parameters) > 1:
            source = f"lambda {', '.join(parameters)}: {parameters[1]}"
            yield wrong.having(name, ExpressionGuess(source))


def pair_result(wrong: Wrong) -> Iterator[Proposal]:
    """Return two values from a function whose result is unpacked, or one."""
    if not _UNPACKED.search(wrong.message):
        return
    for name, guess in wrong.proposal.examples.items():
        if is_lambda(guess) and (parameters := _taken(guess)):
            for count in (2, 0):
                yield wrong.having(name, ExpressionGuess(written(parameters, count=count)))
