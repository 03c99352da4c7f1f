"""Record the abstract values of each expression of instrumented code, and the stages around it.

`Recorder.record` runs for every expression of user code, so it does little and returns early.
It stores avals and texts, never a tracer, a trace or an array: a recorder cannot leak.
It never changes or replaces values.

JAX caches the jaxprs of inner functions (`jit` helpers, loop bodies at module level) and then does
not run their code again.
Observations made while such a jaxpr was traced are kept, and found again by the jaxpr in the next
result.
"""

from __future__ import annotations

import ast
import bisect
import contextlib
import dataclasses
import functools
import logging
import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from jaxsight.interpreters.compat import avals
from jaxsight.tracer.compat import jaxprs, traces
from jaxsight.tracer.observation import display, observer
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.observations import OBSERVED_VALUES, Observation, Seen
from jaxsight.wire.spans import Span

logger = logging.getLogger(__name__)


class CancelledByServer(BaseException):
    """Aborts user code of a cancelled request.

    Not an `Exception`: user code must not catch it by accident.
    """


_IGNORED, _ABSTRACT, _NUMBER, _ARRAY, _TREE = range(5)

_NUMBERS = frozenset({bool, int, float, complex})

_KINDS: dict[type, int] = {
    **dict.fromkeys(
        (
            str, bytes, type(None), type, types.ModuleType, types.FunctionType, types.MethodType,
            types.BuiltinFunctionType, types.BuiltinMethodType, functools.partial, range, slice,
            super, types.EllipsisType, types.GeneratorType, np.dtype, np.ufunc,
        ),
        _IGNORED,
    ),
    **dict.fromkeys(_NUMBERS, _NUMBER),
    **dict.fromkeys((tuple, list, dict), _TREE),
    np.ndarray: _ARRAY,
}  # fmt: skip

_DISTINCT = 256
"""Maximum number of distinct values counted per expression; a Python loop may have many."""

_PATIENCE = 64
"""After this many trees without a new description, trees of an expression are not described."""

_KEPT = 1024
"""Maximum number of jaxprs whose observations are kept, as JAX may reuse the jaxprs."""

_VARIANTS = 16
"""Maximum number of jaxprs of one place in the text, with other inputs or other executions."""


@dataclasses.dataclass(slots=True)
class _Values:
    """Values of an expression in a context, by aval, number or text."""

    last: Any = None
    found: dict[Any, Seen] = dataclasses.field(default_factory=dict)
    more: set[Any] = dataclasses.field(default_factory=set)
    quiet: int = 0

    def add(self, key: Any, seen: Callable[[], Seen]) -> None:
        if key in self.found or key in self.more:
            self.quiet += 1
        elif len(self.found) < OBSERVED_VALUES:
            self.found[key] = seen()
            self.quiet = 0
        elif len(self.more) < _DISTINCT:
            self.more.add(key)
            self.quiet = 0

    def moved(self, outer: int, inside: tuple[str, ...]) -> _Values:
        found = {
            key: dataclasses.replace(seen, inside=(*inside, *seen.inside[outer:]))
            for key, seen in self.found.items()
        }
        return _Values(found=found, more=self.more)


Sites = dict[int, _Values]


@dataclasses.dataclass(slots=True)
class _Context:
    """A trace that user code ran in, with its observations."""

    trace: Any
    """A weak reference."""
    situation: traces.Situation
    values: Sites = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class _Kept:
    """Observations in a context of a jaxpr.

    The first `outer` entries of each `Seen.inside` are the stages around the jaxpr.
    """

    sites: Sites
    outer: int

    def moved(self, inside: tuple[str, ...]) -> Sites:
        """Return the observations for another use of the jaxpr, inside of `inside`."""
        return {number: values.moved(self.outer, inside) for number, values in self.sites.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class _Variant:
    """Identifies a jaxpr of a place in the text, by its inputs and the observed executions."""

    inputs: tuple[Any, ...]
    instances: frozenset[int]
    """First numbers of the executions."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Instance:
    """A chunk as instrumented for an execution; its sites are numbered from `first`."""

    first: int
    sites: tuple[observer.Site, ...]

    def __contains__(self, number: int) -> bool:
        return self.first <= number < self.first + len(self.sites)


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """The result of `Recorder.collect`; fields as in `Traced`."""

    seen: tuple[Seen, ...] = ()
    observations: tuple[Observation, ...] = ()


class Recorder:
    """Records observations of one world, that is of one file.

    `record` is stored in the namespace (or `builtins`) as `observer.NAME`.
    """

    def __init__(self) -> None:
        self.cancelled = False
        """Set by any thread to stop the current request at its next observed expression.

        The runner clears it.
        """
        self.naming: Callable[[int, Any], None] | None = None
        """If set, called with each array and its site."""
        self._instances: dict[tuple[str, str], _Instance] = {}
        self._next = 0
        self._executed: dict[tuple[str, str], list[Sites]] = {}
        self._kept: OrderedDict[traces.Staged, dict[_Variant, list[_Kept]]] = OrderedDict()
        self._contexts: dict[int, _Context] = {}
        self._current: _Context | None = None
        self._trace: Callable[[], Any] = lambda: None
        self._kinds = dict(_KINDS)
        self._describing = False

    def instrument(self, tree: ast.Module, chunk: str, key: str) -> ast.Module:
        """Rewrite the chunk's tree in place and register its sites.

        They replace those of an earlier execution of the chunk.
        """
        self.forget(chunk, key)
        sites = observer.instrument(tree, self._next)
        self._instances[chunk, key] = _Instance(self._next, tuple(sites))
        self._next += len(sites)
        return tree

    def forget(self, chunk: str, key: str) -> None:
        """Remove a chunk that is no longer needed, and its observations."""
        instance = self._instances.pop((chunk, key), None)
        self._executed.pop((chunk, key), None)
        if instance is None:
            return
        for staged, variants in list(self._kept.items()):
            for variant, contexts in list(variants.items()):
                if instance.first not in variant.instances:
                    continue
                del variants[variant]
                left = variant.instances - {instance.first}
                if left:
                    for kept in contexts:
                        for number in [n for n in kept.sites if n in instance]:
                            del kept.sites[number]
                    variants[_Variant(variant.inputs, left)] = contexts
            if not variants:
                del self._kept[staged]

    @contextlib.contextmanager
    def executing(self, chunk: str, key: str) -> Iterator[None]:
        """Record the execution of a chunk, including functions that it calls."""
        self._begin()
        try:
            yield
        finally:
            contexts = self._end()
            self._executed[chunk, key] = [context.values for context in contexts]

    @contextlib.contextmanager
    def tracing(self) -> Iterator[list[Sites]]:
        """Record the tracing of a function; the list is filled at the end, for `collect`."""
        self._begin()
        found: list[Sites] = []
        try:
            yield found
        finally:
            found += [context.values for context in self._end()]

    def _begin(self) -> None:
        # Forget classes of user code each time, as they keep whole modules alive.
        self._kinds = dict(_KINDS)
        self._contexts = {}
        self._current = None
        self._trace = lambda: None

    def _end(self) -> list[_Context]:
        contexts = _last_passes(list(self._contexts.values()))
        self._begin()
        fresh: dict[tuple[traces.Staged, tuple[Any, ...]], list[_Kept]] = {}
        for context in contexts:
            situation = context.situation
            if situation.staged is not None:
                kept = _Kept(context.values, len(situation.inside) - situation.own)
                fresh.setdefault((situation.staged, situation.inputs), []).append(kept)
        for (staged, inputs), made in fresh.items():
            variant = _Variant(inputs, self._instances_of(made))
            variants = self._kept.setdefault(staged, {})
            variants.pop(variant, None)
            variants[variant] = made
            if len(variants) > _VARIANTS:
                del variants[next(iter(variants))]
            self._kept.move_to_end(staged)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return contexts

    def _instances_of(self, contexts: list[_Kept]) -> frozenset[int]:
        firsts = sorted(instance.first for instance in self._instances.values())
        numbers = {number for kept in contexts for number in kept.sites}
        return frozenset(firsts[bisect.bisect(firsts, number) - 1] for number in numbers)

    def record(self, site: int, value: Any) -> Any:
        """Record a value at a site, and return it.

        Raises:
            CancelledByServer: `cancelled` is set.
        """
        if self.cancelled:
            raise CancelledByServer
        kind = self._kinds.get(type(value))
        if self._describing:
            return value
        if kind is None:
            kind = _IGNORED
            with self._looking(value):
                kind = self._kinds[type(value)] = _classify(value)
        if kind == _IGNORED:
            return value
        trace = traces.current()
        if trace is None:
            return value
        if self._trace() is not trace:
            self._enter(trace)
        context = self._current
        assert context is not None
        values = context.values.get(site)
        if values is None:
            values = context.values[site] = _Values()
        if kind == _ABSTRACT:
            if self.naming is not None:
                self.naming(site, value)
            aval = value.aval
            if aval is not values.last or context.situation.mapped:
                values.last = aval
                _add_abstract(values, value, aval, context.situation)
        elif kind == _NUMBER and type(value) in _NUMBERS:
            _add_number(values, value, context.situation)
        elif kind == _NUMBER:
            with self._looking(value):  # a member of an enum has no hash yet during its `__new__`
                _add_number(values, value, context.situation)
        elif kind == _ARRAY:
            key = (type(value), value.shape, value.dtype)
            if key != values.last:
                values.last = key
                _add_array(values, key, value, context.situation)
        elif values.quiet < _PATIENCE:
            with self._looking(value):
                _add_tree(values, value, context.situation)
        return value

    @contextlib.contextmanager
    def _looking(self, value: Any) -> Iterator[None]:
        """Inspect a value, which may run user code (`tree_flatten`).

        That code is not recorded, to prevent infinite recursion, and its errors are not the
        program's: the object may be incomplete (`self` in `__init__`).
        """
        self._describing = True
        try:
            yield
        except Exception as error:  # noqa: BLE001 - user code may raise anything
            logger.debug("cannot inspect a %s: %r", type(value).__name__, error)
        finally:
            self._describing = False

    def site(self, number: int) -> tuple[str, observer.Site] | None:
        """Return the chunk and the site of a number."""
        for (chunk, _), instance in self._instances.items():
            if number in instance:
                return chunk, instance.sites[number - instance.first]
        return None

    def _enter(self, trace: Any) -> None:
        context = self._contexts.get(id(trace))
        if context is None or context.trace() is not trace:
            if context is not None:
                # Another trace had this address before: keep its observations.
                self._contexts[-len(self._contexts)] = context
            context = _Context(traces.reference(trace), traces.situation(trace))
            self._contexts[id(trace)] = context
        self._current = context
        self._trace = context.trace

    def collect(
        self,
        chunks: Iterable[Chunk],
        found: list[Sites],
        reached: Iterable[jaxprs.Reached] = (),
    ) -> Observed:
        """Return the observations in `chunks`.

        They come from the trace (`found`), from inner jaxprs that JAX reused (`reached`), and, for
        functions in neither, from the execution of the chunks.
        """
        chosen = list(chunks)
        instances = {
            (chunk.id, chunk.key): instance
            for chunk in chosen
            if (instance := self._instances.get((chunk.id, chunk.key))) is not None
        }
        firsts = frozenset(instance.first for instance in instances.values())
        contexts = [*found, *self._reused(reached, found, firsts)]
        table = _Table()
        traced = table.gather(contexts, instances)
        executed = [sites for name in instances for sites in self._executed.get(name, ())]
        table.gather(executed, instances, traced)
        return table.observed()

    def unfinished(self) -> list[jaxprs.Reached]:
        """Return the inner jaxprs of running traces; call this while an exception holds them."""
        return [
            reached
            for context in self._contexts.values()
            for reached in jaxprs.reached_from(
                traces.equations(context.trace()), context.situation.inside
            )
        ]

    def _reused(
        self, results: Iterable[jaxprs.Reached], found: list[Sites], instances: frozenset[int]
    ) -> list[Sites]:
        """Return the observations of reused jaxprs, as far as they belong to these executions."""
        ran = {id(sites) for sites in found}
        reused: list[Sites] = []
        for reached in results:
            known = self._kept.get(reached.staged, {})
            # Prefer those that share most executions, then the newest.
            variants = sorted(
                (variant for variant in reversed(known) if variant.instances & instances),
                key=lambda variant: -len(variant.instances & instances),
            )
            if not variants:
                continue
            same = next((each for each in variants if each.inputs == reached.inputs), None)
            if same is None and any(id(kept.sites) in ran for v in variants for kept in known[v]):
                continue
            # If a transformation changed the inputs (`vmap` adds an axis), use the most likely one.
            contexts = known[same or variants[0]]
            reused += [kept.moved(reached.inside) for kept in contexts if id(kept.sites) not in ran]
            ran |= {id(kept.sites) for kept in contexts}
        return reused


def _last_passes(contexts: list[_Context]) -> list[_Context]:
    """Return the contexts without those of a loop body's earlier traces, which JAX discards."""
    latest: dict[tuple[int, traces.Staged], int] = {}
    for context in contexts:
        for run in context.situation.passes:
            known = latest.get((run.loop, run.staged), run.at)
            latest[run.loop, run.staged] = max(known, run.at)
    return [
        context
        for context in contexts
        if all(latest[run.loop, run.staged] == run.at for run in context.situation.passes)
    ]


def _classify(value: Any) -> int:
    """Return how to handle values of this class."""
    match value:
        case jax.core.Tracer() | jax.Array():
            return _ABSTRACT
        case np.ndarray() | np.generic() | jax.ShapeDtypeStruct():
            return _ARRAY
        case type() | types.ModuleType() | str():
            return _IGNORED
        case bool() | int() | float() | complex():
            return _NUMBER
        case tuple() | list() | dict():
            return _TREE
        case _ if dataclasses.is_dataclass(value) or display.is_node(value):
            return _TREE
        case _:
            return _IGNORED


def _add_abstract(values: _Values, value: Any, aval: Any, situation: traces.Situation) -> None:
    inside = situation.inside
    key = aval
    if situation.mapped and isinstance(value, jax.core.Tracer):
        constant = [trace for trace in situation.mapped if not traces.is_mapped(value, trace)]
        if constant:
            inside = (*inside, *(f"not mapped over {trace.axis_data.size}" for trace in constant))
            key = (aval, inside)
    values.add(key, lambda: Seen(avals.text(aval), avals.weak(aval), avals.sharding(aval), inside))


def _add_number(values: _Values, value: Any, situation: traces.Situation) -> None:
    key: Any = (type(value), value)
    if key != values.last:
        values.last = key
        values.add(key, lambda: Seen(repr(value), inside=situation.inside))


def _add_array(values: _Values, key: Any, value: Any, situation: traces.Situation) -> None:
    values.add(key, lambda: Seen(display.array(value) or "", inside=situation.inside))


def _add_tree(values: _Values, value: Any, situation: traces.Situation) -> None:
    shown = display.display(value)
    plain = type(value) in (tuple, list, dict) and shown.numbers and not shown.other
    if shown.arrays or plain:
        values.add(shown.text, lambda: Seen(shown.text, inside=situation.inside))
    else:
        values.quiet += 1


class _Table:
    """Observations under construction: values by site, with shared texts."""

    def __init__(self) -> None:
        self.numbers: dict[Seen, int] = {}
        self.rows: dict[tuple[str, observer.Place], tuple[dict[int, None], int]] = {}

    def gather(
        self,
        contexts: Iterable[Sites],
        instances: dict[tuple[str, str], _Instance],
        known: frozenset[tuple[str, str, int]] = frozenset(),
    ) -> frozenset[tuple[str, str, int]]:
        """Add observations in functions that are not `known`, and return their functions.

        A function is identified by chunk, key and scope.
        """
        ranges = sorted((instance.first, name) for name, instance in instances.items())
        owner = {
            number: name
            for first, name in ranges
            for number in range(first, first + len(instances[name].sites))
        }
        scopes: set[tuple[str, str, int]] = set()
        for sites in contexts:
            for number, values in sites.items():
                name = owner.get(number)
                if name is None or not values.found:
                    continue
                instance = instances[name]
                site = instance.sites[number - instance.first]
                scope = (*name, site.scope)
                if scope in known:
                    continue
                scopes.add(scope)
                for place in site.places:
                    self.add(name[0], place, values)
        return frozenset(scopes)

    def add(self, chunk: str, place: observer.Place, values: _Values) -> None:
        row, more = self.rows.setdefault((chunk, place), ({}, 0))
        for seen in values.found.values():
            row[self.numbers.setdefault(seen, len(self.numbers))] = None
        self.rows[chunk, place] = (row, more + len(values.more))

    def observed(self) -> Observed:
        observations = []
        for (chunk, place), (row, more) in sorted(self.rows.items(), key=_where):
            span = Span(chunk, place.line, place.column, place.end_line, place.end_column)
            kept = tuple(row)[:OBSERVED_VALUES]
            observations.append(Observation(span, place.kind, kept, more + len(row) - len(kept)))
        return Observed(tuple(self.numbers), tuple(observations))


def _where(item: tuple[tuple[str, observer.Place], Any]) -> tuple[str, int, int]:
    (chunk, place), _ = item
    return chunk, place.line, place.column
