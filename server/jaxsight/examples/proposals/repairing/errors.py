"""What the error of a failed trace says of the parameters.

A row of `ROWS` reads: a message like this, about a parameter with such an example, means that it is
of these kinds. A changed example comes from the same table as the first one (`table`, `writing`).
`fitting` has what errors say of shapes.

JAX's messages are those of `jax/_src/core.py`, `errors.py`, `lax/lax.py`, `numpy/indexing.py` and
`numpy/einsum.py` from 0.8 to 0.12. A message that changes only leaves a function without a repair.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from jaxsight.examples.proposals import names
from jaxsight.examples.proposals.clues import Clues
from jaxsight.examples.proposals.functions import ANY, written
from jaxsight.examples.proposals.inference import Inferred
from jaxsight.examples.proposals.kinds import Kind, What
from jaxsight.examples.proposals.proposal import (
    ArrayGuess,
    DictGuess,
    ExpressionGuess,
    Guess,
    KeyGuess,
    ListGuess,
    LiteralGuess,
    Proposal,
)
from jaxsight.examples.proposals.writing import objects
from jaxsight.wire.observations import Failure

_USUAL = ArrayGuess((4, 8))
"""The array where the proposal has none: the usual rank and the first sizes of `sizing`."""
_MOST_ITEMS = 16
"""Items of a list that is unpacked: a choice. More would be a line that nobody reads."""


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
    def arrays(self) -> Mapping[str, ArrayGuess]:
        """The blamed parameters that are arrays."""
        arrays = self.proposal.arrays
        return {n: arrays[n] for n in self.blamed if n in arrays}

    @property
    def suspects(self) -> tuple[str, ...]:
        """The blamed parameters that have an example; all, if there are none."""
        examples = self.proposal.examples
        return tuple(n for n in self.blamed if n in examples) or tuple(examples)

    def is_a(self, *types: str) -> bool:
        """Return whether the exception or a base of it has one of these names."""
        kinds = {self.failure.type, *self.failure.bases}
        return any(name.rpartition(".")[2] in types for name in kinds)

    def having(self, name: str, guess: Guess) -> Proposal:
        """Return the proposal with another example."""
        return self.proposal.having({name: guess})

    @property
    def usual(self) -> ArrayGuess:
        """An array of the proposal, or the usual one."""
        return next(iter(self.proposal.arrays.values()), _USUAL)

    def known(self, name: str) -> Clues:
        """Return what is known of a parameter."""
        known = self.inferred.clues.get(name)
        return known or Clues(name, self.inferred.around)


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """A message, the examples that it may be about, and the kinds of the parameter."""

    pattern: str
    of: tuple[type, ...]
    kind: Kind
    text: str = ""
    """A pattern of the example's text."""
    name: re.Pattern[str] | None = None
    """A pattern of the parameter's name, of parameters that are not blamed."""


_ANY = (ArrayGuess, DictGuess, ListGuess, KeyGuess, LiteralGuess, ExpressionGuess)
ROWS = (
    ErrorRow(
        r"(?i)\bkey\b.*(?:prng|random|dtype|expected)|PRNG",
        (ArrayGuess,),
        Kind.KEY,
        name=names.KEY,
    ),
    ErrorRow(r"key<|typed PRNG key|key types", (KeyGuess,), Kind.ARRAY),
    ErrorRow(r"not callable", _ANY, Kind.FUNCTION),
    ErrorRow(r"no attribute '(?:items|keys|values|get)'", _ANY, Kind.TREE),
    ErrorRow(
        r"not a valid JAX|as a JAX value|hashable|Value '.*' of type",
        (DictGuess, ListGuess, KeyGuess, LiteralGuess, ExpressionGuess),
        Kind.ARRAY,
    ),
    ErrorRow(
        r"(?i)not compatible with finfo|floating|inexact|must have equal types",
        (LiteralGuess,),
        Kind.SCALAR,
        text=r"\d+",
        name=re.compile(r".*"),
    ),
    ErrorRow(r"^expected str", (ArrayGuess,), Kind.STRING),
    ErrorRow(
        r"(?i)negative|positive|must be (?:>|greater|at least)", (LiteralGuess,), Kind.SIZE, "-1"
    ),
    ErrorRow(r"structure|pytree|sequence|iterable|list|tuple", (ArrayGuess,), Kind.LIST),
    ErrorRow(
        r"structure|pytree|sequence|iterable|list|tuple|unsupported operand|'dict'|bad operand",
        (DictGuess,),
        Kind.ARRAY,
    ),
)
"""Messages of JAX, NumPy and libraries; all that match are tried. `tests/proposals` measures of how
many functions of libraries inputs are found."""


def of_kinds(wrong: Wrong) -> Iterator[Proposal]:
    """Give parameters the kinds that the message says."""
    for row in ROWS:
        if not re.search(row.pattern, wrong.message):
            continue
        changed: dict[str, Guess] = {}
        for name, guess in wrong.proposal.examples.items():
            is_meant = name in wrong.suspects or (row.name and row.name.fullmatch(name))
            is_such = isinstance(guess, row.of) and re.fullmatch(row.text or ".*", guess.text)
            if is_meant and is_such:
                match row.kind:
                    case Kind.ARRAY:
                        changed[name] = wrong.usual
                    case Kind.LIST:
                        changed[name] = ListGuess((wrong.usual,) * 2)
                    case Kind.FUNCTION:
                        changed[name] = ExpressionGuess(ANY)
                    case kind:
                        changed[name] = wrong.inferred.example(wrong.known(name), What(kind))
                yield wrong.having(name, changed[name])
        if len(changed) > 1:
            yield wrong.proposal.having(changed)


def construction(wrong: Wrong) -> Iterator[Proposal]:
    """Make an object in another way, or pass `None` or an array in its place."""
    if wrong.failure.stage != "inputs":
        return
    for name, guess in wrong.proposal.examples.items():
        what = wrong.inferred.around.kinds.get(name)
        is_meant = wrong.failure.argument in ("", name)
        if isinstance(guess, ExpressionGuess) and is_meant and what is not None:
            if what.kind is Kind.OBJECT:
                for expression in objects(wrong.known(name), what.detail):
                    yield wrong.having(name, ExpressionGuess(expression))
            if what.kind in (Kind.OBJECT, Kind.OPTIMIZER_STATE):
                yield wrong.having(name, wrong.usual)
                yield wrong.having(name, LiteralGuess("None"))


def attribute(wrong: Wrong) -> Iterator[Proposal]:
    """Pass an object of a class that has the attribute which an array lacks."""
    missing = re.search(r"Tracer'?(?: object)? has no attribute '?(\w+)", wrong.message)
    if missing is None:
        return
    for name in wrong.blamed:
        clues = wrong.known(name)
        for asked in ({missing[1]} | clues.uses.attributes, {missing[1]}):
            known = replace(clues, uses=replace(clues.uses, attributes=asked))
            for expression in objects(known, known.like)[:2] if known.like else ():
                yield wrong.having(name, ExpressionGuess(expression))


def key(wrong: Wrong) -> Iterator[Proposal]:
    """Add a key that a dict lacks."""
    missing = re.search(
        r"(?:got idx=|string index\w*[^']*|KeyError: |^)'(\w+)'(?! object)", wrong.message
    )
    for name in wrong.suspects if missing is not None else ():
        guess = wrong.proposal.examples[name]
        if missing is not None and isinstance(guess, ArrayGuess | DictGuess):
            wrong.known(name).uses.key(repr(missing[1]))
            items = guess.items if isinstance(guess, DictGuess) else ()
            yield wrong.having(name, DictGuess((*items, (repr(missing[1]), wrong.usual))))


def count(wrong: Wrong) -> Iterator[Proposal]:
    """Pass lists with as many items as are unpacked, and small numbers."""
    if unpacked := re.search(r"values to unpack \(expected (\d+)", wrong.message):
        length = int(unpacked[1])
        for name in wrong.blamed:
            guess = wrong.proposal.examples.get(name)
            if isinstance(guess, ListGuess) and 0 < length <= _MOST_ITEMS:
                items = (*guess.items, *[guess.items[-1]] * length)[:length]
                yield wrong.having(name, replace(guess, items=items))
    if re.search(
        r"(?i)less than or equal|exceed|larger than|too large|greater than", wrong.message
    ):
        yield wrong.proposal.having(
            {
                name: LiteralGuess(re.sub(r"\d+", "2", guess.text))
                for name, guess in wrong.proposal.examples.items()
                if isinstance(guess, LiteralGuess) and re.fullmatch(r"[\d, ()]+", guess.text)
            }
        )


def optional(wrong: Wrong) -> Iterator[Proposal]:
    """Pass a value for a parameter that must not be `None`, and `None` where it may be passed."""
    guesses = wrong.inferred.optional
    named = [n for n in guesses if re.search(rf"\b{re.escape(n)}\b", wrong.message)]
    if "NoneType" in wrong.message:
        named += [n for n in wrong.blamed if n in guesses]
    like = max(wrong.proposal.arrays.values(), key=lambda g: len(g.shape), default=_USUAL)
    for name in dict.fromkeys(named):
        if name not in wrong.proposal.examples:
            yield wrong.having(name, guesses[name])
            if isinstance(guesses[name], ArrayGuess):
                yield wrong.having(name, like)
    if allowed := dict.fromkeys(wrong.inferred.nullable, LiteralGuess("None")):
        yield wrong.proposal.having(allowed)


def choice(wrong: Wrong) -> Iterator[Proposal]:
    """Pass the first of the strings that the message lists, or another that the body compares."""
    listed = re.search(
        r"(?:one of|[Mm]ust be|expected|supported|[Vv]alid|options?|either)[^'\"]{0,60}"
        r"(['\"])([\w.-]{1,30})\1",
        wrong.message,
    )
    for name in dict.fromkeys((*wrong.blamed, *wrong.proposal.examples)) if listed else ():
        guess = wrong.proposal.examples.get(name)
        is_text = isinstance(guess, LiteralGuess) and guess.text.startswith("'")
        if listed and (is_text or name in wrong.message):
            yield wrong.having(name, LiteralGuess(repr(listed[2])))
    if wrong.failure.stage == "inputs" or not wrong.is_a(
        "ValueError", "NotImplementedError", "KeyError", "AssertionError"
    ):
        return
    for name, guess in wrong.proposal.examples.items():
        uses = wrong.known(name).uses
        if isinstance(guess, LiteralGuess):
            compared = uses.choices if guess.text.startswith("'") else uses.numbers
            yield from (wrong.having(name, LiteralGuess(other)) for other in compared)


_TRACED = (
    "ConcretizationTypeError",
    "TracerIntegerConversionError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "NonConcreteBooleanIndexError",
    "UnexpectedTracerError",
)
"""The exceptions of `jax.errors` about a traced value where Python needs a number."""


def static(wrong: Wrong) -> Iterator[Proposal]:
    """Pass a value that must be known while tracing as a literal."""
    message = wrong.message
    if not wrong.is_a(*_TRACED) and not re.search(
        r"interpreted as an integer|1D sequences of concrete|unhashable|truth value of an array|"
        r"Only scalar arrays",
        message,
    ):
        return
    listed = re.search(r"depends on the values? of the arguments? ([^\n]*?\.)(?=\s|$)", message)
    said = re.findall(
        r"\b([A-Za-z_]\w*)(?:\[[^\]]*\])?(?=, and |, | and |\.\s|\.$|$)",
        listed[1] if listed else "",
    )
    examples = wrong.proposal.examples
    blamed = [n for n in dict.fromkeys((*said, *wrong.blamed)) if n in examples]
    for name, guess in wrong.inferred.optional.items():  # such as `num_segments=None`
        if name not in examples and isinstance(guess, LiteralGuess) and guess.text.isdigit():
            yield wrong.having(name, guess)
    whole = wrong.proposal
    for name in sorted(blamed, key=lambda n: not isinstance(examples[n], ListGuess)):
        guess = examples[name]
        if isinstance(guess, ListGuess):
            numbers = ", ".join(("8", "4")[i % 2] for i in range(len(guess.items)))
            comma = "," if len(guess.items) == 1 else ""
            yield wrong.having(name, LiteralGuess(f"({numbers}{comma})"))
        if not isinstance(guess, ArrayGuess | DictGuess):
            continue
        changed = _static(wrong, name, guess)
        yield wrong.having(name, changed)
        whole = whole.having({name: changed})
    if len(blamed) > 1:
        yield whole
    for name in blamed:
        if isinstance(examples[name], ArrayGuess):
            yield wrong.having(name, LiteralGuess("2"))
            yield wrong.having(name, LiteralGuess("(4, 8)"))


def _static(wrong: Wrong, name: str, guess: Guess) -> Guess:
    """Return the example of a parameter that is known to be static."""
    dtype = guess.dtype if isinstance(guess, ArrayGuess) else ""
    clues = wrong.known(name)
    uses = replace(clues.uses, array=0, number=0, boolean=dtype == "bool")
    what = wrong.inferred.example(replace(clues, static=True, uses=uses, annotation=""))
    if not isinstance(what, LiteralGuess) or what.text not in ("2", "4"):
        return what
    needs_integer = wrong.is_a("TracerIntegerConversionError") or re.search(
        r"interpreted as an integer|1D sequences", wrong.message
    )
    integer = needs_integer or dtype.startswith("int") or clues.named(names.COUNT)
    return LiteralGuess("2" if integer else "0.5")


_HEAD = re.compile(r"lambda ?([\w, ]*): (.*)", re.DOTALL)
_MOST = 12
"""Parameters of a function that is written: a choice. More would be a line that nobody reads."""
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
