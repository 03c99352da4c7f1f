"""Record the abstract values of each expression of instrumented code, and the stages around it.

`Recorder.record` runs for every expression of user code, so it does little and returns early.
It stores avals and texts, never a tracer, a trace or an array: a recorder cannot leak.
It never changes or replaces values.
"""

from __future__ import annotations

import ast
import bisect
import contextlib
import dataclasses
import functools
import itertools
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

from jaxsight.meshes.compat import shardings
from jaxsight.rewriting.compiling import compiled
from jaxsight.rewriting.rewriter import Rewriter, Site
from jaxsight.tracer.compat import jaxprs, traces
from jaxsight.tracer.interruptions import CancelledByServer
from jaxsight.tracer.observation import observed_values
from jaxsight.tracer.observation.observed_values import (
    ABSTRACT,
    ARRAY,
    IGNORED,
    NUMBER,
    NUMBERS,
    QUIET_TREES,
    InstrumentedChunk,
    Observed,
    Sites,
    SiteValues,
)
from jaxsight.wire.chunks import Chunk, chunk_file, real_file
from jaxsight.wire.meshes import Sharding

# Observations of inner jaxprs, which JAX caches without running the code of their functions again.
#
# Observations made while such a jaxpr was traced are kept, and found again by the jaxpr in the next
# result.

_JAXPRS = 1024
"""Jaxprs whose observations are kept, as JAX may reuse them; code of others has no hints then."""

_VARIANTS = 16
"""Of these, jaxprs of one place in the text, with other inputs or executions; the oldest goes."""


@dataclasses.dataclass(frozen=True, slots=True)
class ContextObservations:
    """Observations in a context of a jaxpr.

    The first `outer` entries of each `Seen.inside` are the stages around the jaxpr.
    """

    sites: Sites
    outer: int

    def moved(self, inside: tuple[str, ...]) -> Sites:
        """Return the observations for another use of the jaxpr, inside of `inside`."""
        return {number: values.moved(self.outer, inside) for number, values in self.sites.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """Identifies a jaxpr of a place in the text, by its inputs and the observed executions."""

    inputs: tuple[object, ...]
    instances: frozenset[int]
    """First numbers of the executions."""


class JaxprObservations:
    """Observations made while jaxprs were traced, found again by the jaxpr that JAX reuses."""

    def __init__(self) -> None:
        self._by_place: OrderedDict[
            traces.StagedFunction, dict[Variant, list[ContextObservations]]
        ] = OrderedDict()

    def put(
        self, staged: traces.StagedFunction, variant: Variant, contexts: list[ContextObservations]
    ) -> None:
        """Add the observations of a new jaxpr."""
        variants = self._by_place.setdefault(staged, {})
        variants.pop(variant, None)
        variants[variant] = contexts
        if len(variants) > _VARIANTS:
            del variants[next(iter(variants))]
        self._by_place.move_to_end(staged)
        while len(self._by_place) > _JAXPRS:
            self._by_place.popitem(last=False)

    def forget(self, chunk: InstrumentedChunk) -> None:
        """Remove the observations of jaxprs with code of an execution of a chunk."""
        for staged, variants in list(self._by_place.items()):
            for variant in [each for each in variants if chunk.first in each.instances]:
                del variants[variant]
            if not variants:
                del self._by_place[staged]

    def reused(
        self,
        results: Iterable[jaxprs.Reached],
        traced: Sequence[Sites],
        instances: frozenset[int],
    ) -> list[Sites]:
        """Return the observations of reused jaxprs, as far as they belong to these executions.

        `traced` are the observations of the trace itself, which are not repeated.
        """
        ran = {id(sites) for sites in traced}
        reused: list[Sites] = []
        for reached in results:
            by_variant = self._by_place.get(reached.staged, {})
            # Prefer those that share most executions, then the newest.
            shared = {each: len(each.instances & instances) for each in reversed(by_variant)}
            variants = [each for each in shared if shared[each]]
            # A transformation may have changed the inputs, as `vmap` adds axes: it is the only one.
            equal = [each for each in variants if each.inputs == reached.inputs]
            if not equal and len(variants) > 1:
                continue
            for variant in sorted(equal or variants, key=shared.__getitem__, reverse=True)[:1]:
                contexts = by_variant[variant]
                new = [context for context in contexts if id(context.sites) not in ran]
                reused += [context.moved(reached.inside) for context in new]
                ran |= {id(context.sites) for context in new}
        return reused


logger = logging.getLogger(__name__)


@dataclasses.dataclass(slots=True)
class _Context:
    """A trace that user code ran in, with its observations."""

    trace: Callable[[], object]
    """A weak reference."""
    situation: traces.Situation
    values: Sites = dataclasses.field(default_factory=dict)
    placed: dict[int, Sharding] = dataclasses.field(default_factory=dict)
    """The shardings of the traced function's arguments, by the ids of their variables."""


class Recorder:
    """Records observations of one file.

    `record` is stored in the namespace (or `builtins`) as `rewriter.SEEN`, and `call` as
    `rewriter.CALLED`.
    """

    def __init__(self) -> None:
        self.cancelled = False
        """Set by any thread to stop the current request at its next observed expression.

        The runner clears it.
        """
        self.capture: Callable[[int, FrameType], None] | None = None
        """If set, called with the site and the frame of each function that begins."""
        self.naming: Callable[[int, object], None] | None = None
        """If set, called with each array and its site."""
        self._instances: dict[tuple[str, str], InstrumentedChunk] = {}
        self._next = 0
        self._executed: dict[tuple[str, str], list[Sites]] = {}
        self._jaxprs = JaxprObservations()
        self._describing = False
        self._arguments: Sequence[traces.PlacedArgument] = ()
        self._begin()

    def instrument(
        self, tree: ast.Module, chunk: str, key: str, again: Rewriter | None = None
    ) -> ast.Module:
        """Rewrite the chunk's tree in place and register its sites.

        They replace those of an earlier execution of the chunk, unless it is rewritten `again`.
        """
        known = self._instances.get((chunk, key)) if again is not None else None
        rewriter = again if again is not None else Rewriter()
        rewriter.first = known.first if known is not None else self._next
        rewriter.rewrite(tree)
        if known is None:
            self.forget(chunk, key)
            instance = InstrumentedChunk(self._next, tuple(rewriter.sites))
            self._instances[chunk, key] = instance
            self._next += len(instance.sites)
        return tree

    def compiled(
        self, chunk: Chunk, file: str, flags: int = 0, again: Rewriter | None = None
    ) -> CodeType:
        """Return the code of a chunk that is instrumented, with the lines that it has in its file.

        Args:
            chunk: the chunk.
            file: the name of its file.
            flags: those of `__future__` imports.
            again: as of `instrument`.

        Raises:
            SyntaxError: (or ValueError, RecursionError, MemoryError) it cannot be compiled.
        """
        instrument = functools.partial(self.instrument, chunk=chunk.id, key=chunk.key, again=again)
        alone, above = chunk_file(real_file(file), chunk.id), chunk.above
        return compiled(chunk.text, file, instrument, above=above, flags=flags, parsed_as=alone)

    def forget(self, chunk: str, key: str) -> None:
        """Remove a chunk that is no longer needed, and its observations."""
        self._executed.pop((chunk, key), None)
        if (instance := self._instances.pop((chunk, key), None)) is not None:
            self._jaxprs.forget(instance)

    @contextlib.contextmanager
    def executing(self, chunk: str, key: str) -> Iterator[None]:
        """Record the execution of a chunk, including functions that it calls."""
        with self.tracing() as self._executed[chunk, key]:
            yield

    @contextlib.contextmanager
    def tracing(self, arguments: Sequence[traces.PlacedArgument] = ()) -> Iterator[list[Sites]]:
        """Record the tracing of a function; the list is filled at the end, for `collect`.

        Args:
            arguments: the arrays among its arguments, if one of them is on several devices.
        """
        self._begin()
        self._arguments = arguments
        observed: list[Sites] = []
        try:
            yield observed
        finally:
            observed += [context.values for context in self._end()]

    def _begin(self) -> None:
        # Forget classes of user code each time, as they keep whole modules alive.
        self._kinds: dict[type, int] = {}
        self._contexts: dict[int, _Context] = {}
        self._current: _Context | None = None
        self._trace: Callable[[], object] = lambda: None
        self._arguments = ()

    def _end(self) -> list[_Context]:
        contexts = _last_passes(list(self._contexts.values()))
        self._begin()
        fresh: dict[
            tuple[traces.StagedFunction, tuple[object, ...]], list[ContextObservations]
        ] = {}
        for context in contexts:
            situation = context.situation
            if situation.staged is not None:
                outer = len(situation.inside) - situation.own
                in_jaxpr = fresh.setdefault((situation.staged, situation.inputs), [])
                in_jaxpr.append(ContextObservations(context.values, outer))
        firsts = sorted(instance.first for instance in self._instances.values())
        for (staged, inputs), in_jaxpr in fresh.items():
            numbers = {number for context in in_jaxpr for number in context.sites}
            instances = {firsts[bisect.bisect(firsts, number) - 1] for number in numbers}
            self._jaxprs.put(staged, Variant(inputs, frozenset(instances)), in_jaxpr)
        return contexts

    def record(self, site: int, value: Any) -> object:
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
            # It stays ignored if classifying runs user code that raises.
            kind = IGNORED
            with self._inspecting(value):
                kind = self._kinds[type(value)] = observed_values.classify(value)
        if kind == IGNORED:
            return value
        context = self._entered()
        if context is None:
            return value
        values = context.values.get(site)
        if values is None:
            values = context.values[site] = SiteValues()
        if kind == ABSTRACT and self.naming is not None:
            self.naming(site, value)
        # Nothing is added that is the same as the last value.
        situation = context.situation
        if kind == ABSTRACT:
            aval = value.aval
            # The same aval may lie on other devices.
            if aval is not values.last or context.placed:
                values.last = aval
                placed = context.placed.get(traces.variable(value)) or shardings.placement(value)
                observed_values.add_abstract(values, aval, situation, placed)
        elif kind == NUMBER and type(value) in NUMBERS:
            observed_values.add_number(values, value, situation)
        elif kind == ARRAY:
            observed_values.add_array(values, value, situation)
        # A tree may have changed in place: describe it again, until nothing new comes.
        elif kind == NUMBER or values.quiet < QUIET_TREES:
            # A member of an enum has no hash yet during its `__new__`.
            add = observed_values.add_number if kind == NUMBER else observed_values.add_tree
            with self._inspecting(value):
                add(values, value, situation)
        return value

    def call(self, site: int) -> None:
        """Tell of a call of a function of the file, which begins."""
        if self.capture is not None and not self._describing:
            frame = sys._getframe(1)
            with self._inspecting(frame):
                self.capture(site, frame)

    @contextlib.contextmanager
    def _inspecting(self, value: object) -> Iterator[None]:
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

    def site(self, number: int) -> tuple[str, Site] | None:
        """Return the chunk and the site of a number."""
        for (chunk, _), instance in self._instances.items():
            if number in instance:
                return chunk, instance.sites[number - instance.first]
        return None

    def _entered(self) -> _Context | None:
        """Return the context of the current trace, if there is one."""
        trace = traces.current()
        if trace is None:
            return None
        if self._trace() is not trace:
            context = self._contexts.get(id(trace))
            if context is None or context.trace() is not trace:
                if context is not None:
                    # Another trace had this address before: keep its observations.
                    self._contexts[-len(self._contexts)] = context
                context = _Context(traces.reference(trace), traces.situation(trace))
                if self._arguments:
                    context.placed = traces.placed(trace, self._arguments)
                self._contexts[id(trace)] = context
            self._current = context
            self._trace = context.trace
        return self._current

    def collect(
        self,
        chunks: Iterable[Chunk],
        traced: list[Sites],
        reached: Iterable[jaxprs.Reached] = (),
    ) -> Observed:
        """Return the observations in `chunks`.

        They come from the trace (`traced`), from inner jaxprs that JAX reused (`reached`), and, for
        functions in neither, from the execution of the chunks.
        """
        names = [(chunk.id, chunk.key) for chunk in chunks]
        instances = {name: self._instances[name] for name in names if name in self._instances}
        firsts = frozenset(instance.first for instance in instances.values())
        reused = self._jaxprs.reused(reached, traced, firsts)
        executed = [sites for name in instances for sites in self._executed.get(name, ())]
        return observed_values.observed([*traced, *reused], executed, instances)

    def unfinished(self) -> list[jaxprs.Reached]:
        """Return the inner jaxprs of running traces; call this while an exception holds them."""
        running = [(traces.equations(c.trace()), c.situation) for c in self._contexts.values()]
        reached = (jaxprs.reached_from(equations, at.inside) for equations, at in running)
        return [*itertools.chain.from_iterable(reached)]


def _last_passes(contexts: list[_Context]) -> list[_Context]:
    """Return the contexts without those of a loop body's earlier traces, which JAX discards."""
    passes = [run for context in contexts for run in context.situation.passes]
    ordered = sorted(passes, key=lambda run: run.at)
    latest = {(run.loop, run.staged): run.at for run in ordered}
    ended = {id(run) for run in passes if latest[run.loop, run.staged] != run.at}
    return [each for each in contexts if ended.isdisjoint(map(id, each.situation.passes))]
