"""Write the types of a trace with names of sizes: `f32[B,H,L,L]` in place of `f32[2,4,8,8]`.

Traces with other sizes are aligned by place: the same expression, the same number of values, and
types that differ only in the numbers between their brackets. Where they do not align, the function
took another path, and the type keeps its numbers.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jaxsight.examples.resizing import SizedInputs
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.observations import ExprValue, Observation

# Explain a dimension by named sizes: `D`, `3*D`, `L+1`, `B*L`, `D//H`.
#
# A dimension was observed in several traces, each with other sizes. A formula explains it if it
# gives the observed number in every trace. Small numbers coincide often, so a dimension has a
# formula only if no other one of the grammar explains it too.

Sample = Mapping[str, int]
"""The sizes of one trace by name."""

_LARGEST_FACTOR, _LARGEST_OFFSET, _DIVISORS = 64, 16, (2, 3, 4, 8, 16)
"""Constants of formulas, a choice: more explain dimensions that are related by chance, so that none
gets a name. `tools/size_names` measures both."""
_LEAST_QUOTIENT = 5
"""A quotient explains a dimension only if it is this in one trace: smaller ones often coincide."""
_MOST_NAMES = 8
"""Names from which products of three are not tried: there would be more than 56."""


@dataclass(frozen=True, slots=True)
class Formula:
    """A size as an expression of names; `rank` orders formulas from simple to complex."""

    text: str
    value: Callable[[Sample], int] = field(compare=False)
    rank: int = field(compare=False)


def explanations(
    names: Sequence[str], samples: Sequence[Sample], dims: Sequence[int]
) -> list[Formula]:
    """Return all formulas that give the dimension in each sample, simple ones first.

    Args:
        names: the names that a formula may use.
        samples: the sizes of each trace.
        dims: the dimension in each trace; if all are equal, it does not depend on the sizes.
    """
    if len(set(dims)) == 1:
        return []
    formulas = [
        formula
        for formula in _candidates(names, samples, dims)
        if all(formula.value(s) == d for s, d in zip(samples, dims, strict=True))
    ]
    return sorted(formulas, key=lambda formula: formula.rank)


def _candidates(
    names: Sequence[str], samples: Sequence[Sample], dims: Sequence[int]
) -> Iterator[Formula]:
    """Yield formulas that may explain the dimension; their constants follow from one sample."""
    first, dim = samples[0], dims[0]
    terms = list(_terms(names))
    for term in terms:
        yield term
        size = term.value(first)
        if size > 0 and dim % size == 0 and 1 < dim // size <= _LARGEST_FACTOR:
            yield _multiple(term, dim // size)
        yield from _with_offset(term, dim - size)
        for factor in (2, 3, 4):
            yield from _with_offset(_multiple(term, factor), dim - factor * size)
        if term.rank == 0 and max(dims) >= _LEAST_QUOTIENT:
            for divisor in _DIVISORS:
                yield from _divided(term, divisor)
    if max(dims) >= _LEAST_QUOTIENT:
        for one, two in itertools.permutations(names, 2):
            yield from _quotients(one, two)


def _terms(names: Sequence[str]) -> Iterator[Formula]:
    """Yield names, products, sums and differences of names."""
    for name in names:
        yield Formula(name, lambda s, n=name: s[n], 0)  # type: ignore[misc]
    for one, two in itertools.combinations_with_replacement(names, 2):
        text = f"{one}**2" if one == two else f"{one}*{two}"
        yield Formula(text, lambda s, a=one, b=two: s[a] * s[b], 2)  # type: ignore[misc]
    for one, two in itertools.combinations(names, 2):
        yield Formula(f"{one}+{two}", lambda s, a=one, b=two: s[a] + s[b], 2)  # type: ignore[misc]
    for one, two in itertools.permutations(names, 2):
        yield Formula(f"{one}-{two}", lambda s, a=one, b=two: s[a] - s[b], 2)  # type: ignore[misc]
    for one, two in itertools.combinations(names, 2):
        yield Formula(f"min({one},{two})", lambda s, a=one, b=two: min(s[a], s[b]), 4)  # type: ignore[misc]
        yield Formula(f"max({one},{two})", lambda s, a=one, b=two: max(s[a], s[b]), 4)  # type: ignore[misc]
    if len(names) <= _MOST_NAMES:
        for some in itertools.combinations(names, 3):
            yield Formula("*".join(some), lambda s, n=some: s[n[0]] * s[n[1]] * s[n[2]], 4)  # type: ignore[misc]


def _multiple(term: Formula, factor: int) -> Formula:
    inner = f"({term.text})" if "+" in term.text or "-" in term.text else term.text
    return Formula(f"{factor}*{inner}", lambda s: factor * term.value(s), term.rank + 1)


def _with_offset(term: Formula, offset: int) -> Iterator[Formula]:
    if 0 < abs(offset) <= _LARGEST_OFFSET:
        sign = "+" if offset > 0 else "-"
        text = f"{term.text}{sign}{abs(offset)}"
        yield Formula(text, lambda s: term.value(s) + offset, term.rank + 2)


def _divided(term: Formula, divisor: int) -> Iterator[Formula]:
    """Yield a term divided by a number, rounded down and up."""
    yield Formula(f"{term.text}//{divisor}", lambda s: term.value(s) // divisor, 2)
    text = f"({term.text}+{divisor - 1})//{divisor}"
    yield Formula(text, lambda s: -(-term.value(s) // divisor), 3)


def _quotients(one: str, two: str) -> Iterator[Formula]:
    """Yield `one` divided by `two`, rounded down and up."""

    def down(sample: Sample) -> int:
        return sample[one] // max(sample[two], 1)

    def up(sample: Sample) -> int:
        return -(-sample[one] // max(sample[two], 1))

    yield Formula(f"{one}//{two}", down, 3)
    yield Formula(f"({one}+{two}-1)//{two}", up, 5)


_SHAPE = re.compile(r"(?<=[\w>])\[((?:[^\[\]()' ]|@\([^\[\]()' ]*\))+)\]")
_SIZE = re.compile(r"(?:(?<=,)|^)\d+(?=[,@]|$)")
_DIGITS = re.compile(r"\d+")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")

_LEAST_DISTINCT = 3
"""Different numbers that a formula of more than a name has to explain: its constants fit two."""

BLANK = "_"
"""A dimension that follows from assumed sizes in an unknown way."""

Choose = Callable[[Sequence[int]], str]
"""Returns the formula of a dimension, given its number in each trace; empty if it has none."""


@dataclass(frozen=True, slots=True)
class SizeNames:
    """The types of one trace with names of sizes."""

    values: dict[Observation, tuple[str, ...]] = field(default_factory=dict)
    """Of each observation that has names, the types of its values."""
    parameters: dict[str, str] = field(default_factory=dict)
    outputs: str = ""
    """The type of the result; empty if it has no names."""
    jaxpr: str = ""
    """The jaxpr with names of assumed sizes; empty if it has numbers that may follow from them."""
    inputs: SizedInputs | None = None
    """The assumed inputs with these names."""

    def __bool__(self) -> bool:
        return bool(self.values or self.parameters or self.outputs)


def dimensions(traces: Sequence[Traced]) -> frozenset[tuple[int, ...]]:
    """Return the dimensions that vary between traces, each as its number in every one."""
    dims: set[tuple[int, ...]] = set()

    def note(numbers: Sequence[int]) -> str:
        dims.add(tuple(numbers))
        return ""

    names_of(traces, note)
    return frozenset(numbers for numbers in dims if len(set(numbers)) > 1)


def names_of(
    traces: Sequence[Traced], choose: Choose, unaligned: Callable[[str], str] | None = None
) -> SizeNames:
    """Return the types of the first trace with the formulas that `choose` returns.

    Args:
        traces: the first one with the given sizes, and others.
        choose: the formula of a dimension.
        unaligned: writes a type that the traces do not have in common. With it, all types are
            returned, also those that stay as they are.
    """
    is_whole = unaligned is not None
    choose = functools.lru_cache(maxsize=None)(choose)
    first, *others = traces
    by_place = [
        {
            (_chunk(other, observation), observation.kind): observation
            for observation in other.observations
        }
        for other in others
    ]
    values: dict[Observation, tuple[str, ...]] = {}
    for observation in first.observations:
        place = _chunk(first, observation), observation.kind
        same = [places.get(place) for places in by_place]
        seen = [_seen(first, observation)]
        for other, twin in zip(others, same, strict=True):
            if twin is None or len(twin.values) != len(observation.values):
                break
            if bool(twin.more) != bool(observation.more):
                break
            seen.append(_seen(other, twin))
        texts = [
            named([one.text for one in ones], choose, unaligned)
            for ones in zip(*seen, strict=True)
            if len(seen) == len(traces)
            and len({_DIGITS.sub("", "›".join(one.inside)) for one in ones}) == 1
        ]
        if len(texts) < len(observation.values) and unaligned is not None:
            texts = [unaligned(one.text) for one in seen[0]]
        is_new = is_whole or texts != [one.text for one in seen[0]]
        if len(texts) == len(observation.values) and is_new:
            values[observation] = tuple(texts)
    parameters: dict[str, str] = {}
    for row in zip(*(trace.parameters for trace in traces), strict=False):
        name, text = row[0]
        if all(other == name for other, _ in row):
            written = named([text for _, text in row], choose, unaligned)
            if is_whole or written != text:
                parameters[name] = written
    outputs = named([trace.outputs for trace in traces], choose, unaligned)
    is_new = is_whole or outputs != first.outputs
    return SizeNames(values, parameters, outputs if is_new else "")


def with_literals(names: SizeNames, inputs: SizedInputs) -> SizeNames:
    """Return the names with those in literals of assumed inputs: `n: K` in place of `n: 3`."""
    literals = {
        argument.name: "".join(inputs.sources[argument.name])
        for argument in inputs.set.arguments
        if argument.name in inputs.sources and getattr(argument.spec, "literal", False)
    }
    return replace(names, parameters=names.parameters | literals)


def named(
    texts: Sequence[str], choose: Choose, unaligned: Callable[[str], str] | None = None
) -> str:
    """Return the first text with formulas in place of the dimensions that have one."""
    first = texts[0]
    other = unaligned(first) if unaligned is not None else first
    masked = [_STRING.sub(lambda string: "'" * len(string[0]), text) for text in texts]
    # `[]` is a scalar's shape.
    if len({_NUMBER.sub("", _SHAPE.sub("[#]", text)) for text in masked}) > 1:
        return other
    shapes = [list(_SHAPE.finditer(text)) for text in masked]
    parts: list[str] = []
    end = 0
    for twins in zip(*shapes, strict=True):
        sizes = [[int(size[0]) for size in _SIZE.finditer(twin[1])] for twin in twins]
        if len({len(ones) for ones in sizes}) > 1:
            return other
        replacing = iter([choose(numbers) for numbers in zip(*sizes, strict=True)])
        shape = _SIZE.sub(lambda size, r=replacing: next(r) or size[0], twins[0][1])  # type: ignore[misc]
        parts += [first[end : twins[0].start(1)], shape]
        end = twins[0].end(1)
    return "".join((*parts, first[end:]))


def blanked(text: str) -> str:
    """Return a type with `_` for each dimension."""
    return _SHAPE.sub(lambda shape: f"[{_SIZE.sub(BLANK, shape[1])}]", text)


def named_program(texts: Sequence[str], choose: Choose) -> str:
    """Return the first of several jaxprs with formulas for numbers; empty if they do not align."""
    parts = [_NUMBER.split(text) for text in texts]
    if any(part != parts[0] for part in parts):
        return ""
    numbers = zip(*(map(int, _NUMBER.findall(text)) for text in texts), strict=True)
    first, *rest = parts[0]
    return first + "".join(
        f"{choose(ones) or ones[0]}{part}" for ones, part in zip(numbers, rest, strict=True)
    )


def chooser(
    names: Sequence[str],
    samples: Sequence[Sample],
    synthetic: Sequence[Sample],
    *,
    divides: bool = True,
) -> Choose:
    """Return what writes a dimension as the only formula that explains it in all samples.

    Args:
        names: the names that formulas may use.
        samples: the sizes of each trace.
        synthetic: other sizes with the relations that the function needs; formulas that agree on
            all of them are the same for it.
        divides: whether quotients are formulas.
    """

    def choose(numbers: Sequence[int]) -> str:
        if not (formulas := explanations(names, samples, numbers)):
            return ""
        best = formulas[0]
        if not divides and "//" in best.text:
            return ""
        if not best.text.isidentifier() and len(set(numbers)) < _LEAST_DISTINCT:
            return ""
        if len(formulas) > 1 and not synthetic:
            return ""
        for other in formulas[1:]:
            if any(other.value(sizes) != best.value(sizes) for sizes in synthetic):
                return ""
        return best.text

    return choose


def _seen(trace: Traced, observation: Observation) -> list[ExprValue]:
    return [trace.seen[index] for index in observation.values]


def _chunk(trace: Traced, observation: Observation) -> object:
    """Return the place of an observation, by the id of the chunk that was asked for."""
    span = observation.span
    asked = next((r.asked for r in trace.reused if r.executed == span.chunk), span.chunk)
    return asked, span.line, span.column, span.end_line, span.end_column
