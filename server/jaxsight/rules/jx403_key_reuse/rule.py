"""JX403: the same PRNG key is consumed twice, so two draws that should differ are the same.

Found in the traced program, for typed and for raw keys; JAX's own checker (`jax.experimental.key_reuse`), which has to be switched on and does not know raw keys, is
recognised by its error. As there, drawing and splitting consume a key, `fold_in` does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.rules.exceptions import is_a, jax_page, quoted
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Flow, Reading, captured
from jaxsight.rules.rule import Rule
from jaxsight.tracer.program import LITERAL, Step
from jaxsight.tracer.protocol import Failure

RULE = Rule(
    "JX403",
    "key-reuse",
    "A PRNG key is used twice.",
)

_CONSUMES = frozenset({"random_bits", "random_split", "random_gamma"})
_MOVES = frozenset(
    {"slice", "squeeze", "reshape", "unstack", "random_wrap", "random_unwrap", "dynamic_slice", "expand_dims"}
)  # fmt: skip
_LOOPS = frozenset({"scan", "while"})

_DRAWS = re.compile(
    r"random\.\w+\(|\b(?:ball|bernoulli|beta|binomial|bits|categorical|cauchy|chisquare|choice|dirichlet|double_sided_maxwell|exponential|gamma|geometric|"
    r"gumbel|laplace|loggamma|logistic|lognormal|maxwell|multinomial|multivariate_normal|normal|orthogonal|pareto|permutation|poisson|rademacher|randint|rayleigh|"
    r"split|triangular|truncated_normal|uniform|wald|weibull_min)\("
)
"""Calls of functions of `jax.random`, whatever that is called here."""

Token = object


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Noticed | None:
    """Recognises the error of JAX's key-reuse checker (`jax_debug_key_reuse`)."""
    if not is_a(failure, "KeyReuseError"):
        return None
    return Noticed(
        f"{quoted(expression, 'This call')} uses a PRNG key that was used before: both draw from the same random bits. "
        "Split it first: `key, subkey = jax.random.split(key)`.",
        url=jax_page(failure),
    )


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Each second use of a key, and each use in a loop of a key from outside; once for each place."""
    flow = reading.flow
    keys = _Keys(flow)
    first: dict[Token, Step] = {}
    told: set[object] = set()
    for step in flow.steps.values():
        if step.primitive not in _CONSUMES or step.backward or not step.operands:
            continue
        key = keys.of(step.operands[0])
        before = first.setdefault(key, step)
        if step.span is None or step.span in told:
            continue
        if before is not step and _excluded(flow, before, step):
            continue
        if before is not step and (before.span != step.span or _drawn(reading, step)):
            told.add(step.span)
            where = (
                ""
                if before.span == step.span
                else f", which {reading.quoted(before.path)} used before"
            )
            yield Noticed(
                f"{reading.quoted(step.path)} uses a PRNG key again{where}: {_harm(before, step)}. Split it first: "
                "`key, subkey = jax.random.split(key)`.",
                step.path,
                related=((before.path, "used here before"),) if before.span != step.span else (),
            )
        elif before is step and keys.from_outside(step) and _drawn(reading, step):
            told.add(step.span)
            yield Noticed(
                f"{reading.quoted(step.path)} uses the same PRNG key in each iteration of a loop: all draw the same numbers. Carry the key and "
                "split it in the body, or fold the counter in (`jax.random.fold_in(key, i)`).",
                step.path,
            )


def _harm(before: Step, step: Step) -> str:
    """Return what comes of using a key twice."""
    splits = [each.primitive == "random_split" for each in (before, step)]
    if all(splits):
        return "both splits give the same keys"
    if any(splits):
        return "what is drawn may repeat what its subkeys draw"
    return "both draw from the same random bits"


def _drawn(reading: Reading, step: Step) -> bool:
    """Whether the user's own expression draws: what a library does with a key inside of one call is its own business."""
    return _DRAWS.search(reading.quote(step.path)) is not None


def _excluded(flow: Flow, one: Step, other: Step) -> bool:
    """Whether they stand in different branches of one `cond`, of which one runs; or in a recomputation."""
    first, second = one.path.split("/"), other.path.split("/")
    for place, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return a.startswith("branches") and b.startswith("branches") and place % 2 == 1
    return False


class _Keys:
    """Values as what they are made of, so that two slices of the same keys are one."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._known: dict[int, Token] = {}
        self._outer: dict[int, int] = {}
        self._looped: set[int] = set()
        for step in flow.steps.values():
            for body in step.bodies:
                if step.primitive in _LOOPS:
                    given = captured(step)
                    # Of a while the constants of the condition come first; its body takes those after.
                    inputs = body.inputs[: len(given)] if step.primitive == "scan" else ()
                    pairs = list(zip(inputs, given, strict=False))
                    self._looped |= {inner for inner, _ in pairs}
                elif step.primitive == "cond":
                    pairs = list(zip(body.inputs, step.operands[1:], strict=False))
                else:
                    continue
                self._outer |= dict(pairs)

    def of(self, number: int) -> Token:
        """The token of a value; equal tokens are equal values."""
        number = self._flow.of(number)
        if number not in self._known:
            self._known[number] = number  # while it is being looked at
            self._known[number] = self._made(number)
        return self._known[number]

    def from_outside(self, step: Step) -> bool:
        """Whether the key that a step in a loop consumes is the same in each round."""
        waiting = [self._flow.of(step.operands[0])]
        while waiting:
            number = waiting.pop()
            if number in self._looped:
                return True
            if number in self._outer:
                waiting.append(self._flow.of(self._outer[number]))
            made = self._flow.made_by(number)
            if made is not None and made.primitive in _MOVES:
                waiting += [self._flow.of(made.operands[0])] if made.operands else []
        return False

    def _made(self, number: int) -> Token:
        value = self._flow.values[number]
        if value.origin == LITERAL:
            return "literal", value.said
        if number in self._outer:
            return self.of(self._outer[number])
        step = self._flow.made_by(number)
        if step is None or step.primitive not in _MOVES:
            return number
        if step.primitive == "random_wrap":
            before = self._flow.made_by(step.operands[0])
            if before is not None and before.primitive == "random_unwrap":
                return self.of(before.operands[0])
        operands = tuple(self.of(each) for each in step.operands)
        return step.primitive, step.parameters, step.results.index(number), operands
