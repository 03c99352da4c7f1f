"""The values of expressions: how those of each class are described, and all of them for the server.

This stores avals and texts, never a tracer, a trace or an array.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Iterable, Mapping

import jax
import numpy as np

from jaxsight.meshes.compat import shardings
from jaxsight.rewriting.rewriter import Site, SourceRange
from jaxsight.tracer.compat import traces
from jaxsight.tracer.observation import display, trees
from jaxsight.wire.chunks import Span
from jaxsight.wire.meshes import Sharding
from jaxsight.wire.observations import OBSERVED_VALUES, ExprValue, Observation
from jaxsight_source.compat import avals

IGNORED, ABSTRACT, NUMBER, ARRAY, TREE = range(5)

NUMBERS = frozenset({bool, int, float, complex})

_DISTINCT = 256
"""Maximum number of distinct values counted per expression; a Python loop may have many."""

QUIET_TREES = 64
"""After this many trees without a new description, trees of an expression are not described."""


@dataclasses.dataclass(slots=True)
class SiteValues:
    """Values of an expression in a context, by aval, number or text."""

    last: object = None
    """The key of the last value."""
    described: dict[object, ExprValue] = dataclasses.field(default_factory=dict)
    more: set[object] = dataclasses.field(default_factory=set)
    """Keys of values past the maximum number of descriptions."""
    quiet: int = 0
    """Number of values since the last new one."""

    def add(self, key: object, describe: Callable[[], ExprValue]) -> None:
        """Add a value by its key; `describe` is called if it is new."""
        if key in self.described or key in self.more:
            self.quiet += 1
        elif len(self.described) < OBSERVED_VALUES:
            self.described[key] = describe()
            self.quiet = 0
        elif len(self.more) < _DISTINCT:
            self.more.add(key)
            self.quiet = 0

    def moved(self, outer: int, inside: tuple[str, ...]) -> SiteValues:
        """Return the values with the stages `inside` instead of the first `outer` ones."""
        pairs = self.described.items()
        scopes = ((key, seen, (*inside, *seen.inside[outer:])) for key, seen in pairs)
        described = {key: dataclasses.replace(seen, inside=within) for key, seen, within in scopes}
        return SiteValues(described=described, more=self.more)


Sites = dict[int, SiteValues]
"""The values of expressions, by the numbers of their sites."""


def classify(value: object) -> int:
    """Return how to handle values of this class."""
    match value:
        case jax.core.Tracer() | jax.Array():
            return ABSTRACT
        case np.ndarray() | np.generic() | jax.ShapeDtypeStruct():
            return ARRAY
        case None | type() | types.ModuleType() | str():
            return IGNORED
        case bool() | int() | float() | complex():
            return NUMBER
        case tuple() | list() | dict():
            return TREE
        case _ if "__func__" in getattr(type(value), "__dataclass_fields__", ()):
            return IGNORED  # a bound method of Equinox, which is a pytree
        case _ if dataclasses.is_dataclass(value) or display.is_node(value):
            return TREE
        case _:
            return IGNORED


def add_abstract(
    values: SiteValues,
    aval: object,
    situation: traces.Situation,
    placed: Sharding | None,
) -> None:
    """Add an array or tracer by its aval.

    Args:
        values: where to add it.
        aval: its abstract value.
        situation: where user code is running.
        placed: the array's sharding that is not part of its aval.
    """
    key = aval if placed is None else (aval, placed)

    def describe() -> ExprValue:
        text = shardings.with_placement(avals.text(aval), placed)
        return ExprValue(text, avals.weak(aval), placed or shardings.traced(aval), situation.inside)

    values.add(key, describe)


def add_number(values: SiteValues, value: object, situation: traces.Situation) -> None:
    """Add a Python number."""
    # Include the class, as `1 == 1.0 == True`.
    key: object = (type(value), value)
    if key != values.last:
        values.last = key
        values.add(key, lambda: ExprValue(repr(value), inside=situation.inside))


def add_array(values: SiteValues, value: np.ndarray, situation: traces.Situation) -> None:
    """Add an array with values or a shape."""
    key = (type(value), value.shape, value.dtype)
    if key != values.last:
        values.last = key
        values.add(key, lambda: ExprValue(display.array(value) or "", inside=situation.inside))


def add_tree(values: SiteValues, value: object, situation: traces.Situation) -> None:
    """Add a pytree or module, if it has arrays or is a plain container of numbers."""
    shown = display.Display(value)
    plain = type(value) in (tuple, list, dict) and shown.numbers and not shown.opaque

    def describe() -> ExprValue:
        return ExprValue(shown.text, inside=situation.inside, tree=trees.tree(value))

    if shown.arrays or plain:
        values.add(shown.text, describe)
    elif (text := display.without_arrays(value)) is not None:
        values.add(text, lambda: ExprValue(text, inside=situation.inside))
    else:
        values.quiet += 1


@dataclasses.dataclass(frozen=True, slots=True)
class InstrumentedChunk:
    """A chunk as instrumented for an execution; its sites are numbered from `first`."""

    first: int
    sites: tuple[Site, ...]

    def __contains__(self, number: int) -> bool:
        return self.first <= number < self.first + len(self.sites)


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """The result of `Recorder.collect`; fields as in `Traced`."""

    seen: tuple[ExprValue, ...] = ()
    observations: tuple[Observation, ...] = ()


def observed(
    traced: Iterable[Sites],
    executed: Iterable[Sites],
    instances: Mapping[tuple[str, str], InstrumentedChunk],
) -> Observed:
    """Return the values at sites for the server, with shared texts.

    Those of executions count in functions that have none in a trace.
    """
    owner = {
        instance.first + at: (name, site)
        for name, instance in instances.items()
        for at, site in enumerate(instance.sites)
    }
    functions: set[tuple[str, str, int]] = set()
    numbers: dict[ExprValue, int] = {}
    rows: dict[tuple[str, SourceRange], tuple[dict[int, None], int]] = {}
    for contexts, is_trace in ((traced, True), (executed, False)):
        for sites in contexts:
            for number, values in sites.items():
                if number not in owner or not values.described:
                    continue
                name, site = owner[number]
                function = (*name, site.scope)
                if is_trace:
                    functions.add(function)
                elif function in functions:
                    continue
                for place in site.ranges:
                    row, more = rows.setdefault((name[0], place), ({}, 0))
                    for description in values.described.values():
                        row[numbers.setdefault(description, len(numbers))] = None
                    rows[name[0], place] = (row, more + len(values.more))
    observations = []
    for (chunk, at), (row, more) in sorted(
        rows.items(), key=lambda each: (each[0][0], each[0][1].line, each[0][1].column)
    ):
        span = Span(chunk, at.line, at.column, at.end_line, at.end_column)
        kept = tuple(row)[:OBSERVED_VALUES]
        observations.append(Observation(span, at.kind, kept, more + len(row) - len(kept)))
    return Observed(tuple(numbers), tuple(observations))
