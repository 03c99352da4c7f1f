"""Change the functions of a proposal by its error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.examples.proposals.functions import written
from jaxsight.examples.proposals.proposal import ExpressionGuess, Guess, Proposal
from jaxsight.examples.proposals.repairing.errors import Wrong

_HEAD = re.compile(r"lambda ?([\w, ]*): (.*)", re.DOTALL)
_MOST = 12
_ANY_CALL = ExpressionGuess("lambda *args, **kwargs: args[0]")
_PAIR = re.compile(
    r"unpack non-iterable|iteration over a 0-d|has_aux|\bpair\b|(?:length|len) 2|2-tuple|scan body"
)
_SCALAR = re.compile(
    r"scalar-output|Gradient only defined|"
    r"must (?:be|return|output) a (?:single )?(?:[\w-]+ )?scalar"
)


def _lambdas(wrong: Wrong) -> dict[str, ExpressionGuess]:
    return {
        n: g
        for n, g in wrong.proposal.examples.items()
        if isinstance(g, ExpressionGuess) and g.source.startswith("lambda")
    }


def arity(wrong: Wrong) -> Iterator[Proposal]:
    """Take as many arguments as a function is called with."""
    message = wrong.message
    lambdas = _lambdas(wrong)
    passed = -1
    if numbers := re.search(r"takes (\d+) positional arguments? but (\d+)", message):
        passed = int(numbers[2])
        lambdas = {n: g for n, g in lambdas.items() if len(_taken(g)) == int(numbers[1])}
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
            is_pair = body is not None and body[2].startswith("(") and "," in body[2]
            numpy = wrong.inferred.around.numpy
            made = f"{numpy}.ones({wrong.proposal.shape(wrong.usual)})" if numpy else "0.0"
            changed = written(parameters, count=2 if is_pair else 0, is_scalar="** 2" in guess.text)
            yield wrong.having(name, ExpressionGuess(changed if parameters else f"lambda: {made}"))
    if lambdas:
        yield wrong.proposal.having(dict.fromkeys(lambdas, _ANY_CALL))


def _taken(guess: Guess) -> list[str]:
    head = _HEAD.match(guess.text)
    return [p.strip() for p in head[1].split(",") if p.strip()] if head else []


def results(wrong: Wrong) -> Iterator[Proposal]:
    """Return a scalar from a function that is differentiated, and two values that are unpacked."""
    for name, guess in _lambdas(wrong).items():
        parameters = _taken(guess)
        if _SCALAR.search(wrong.message):
            yield wrong.having(name, ExpressionGuess("lambda *args: (args[0] ** 2).sum()"))
        if _PAIR.search(wrong.message) and parameters:
            for count in (2, 0):
                yield wrong.having(name, ExpressionGuess(written(parameters, count=count)))
        if "carry" in wrong.message and len(parameters) > 1:
            source = f"lambda {', '.join(parameters)}: {parameters[1]}"
            yield wrong.having(name, ExpressionGuess(source))
