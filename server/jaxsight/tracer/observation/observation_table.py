"""Collect the values at sites into observations for the server."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from jaxsight.tracer.observation import instrumentation
from jaxsight.tracer.observation.observed_values import Sites, SiteValues
from jaxsight.wire.messages import tracing as protocol


@dataclasses.dataclass(frozen=True, slots=True)
class InstrumentedChunk:
    """A chunk as instrumented for an execution; its sites are numbered from `first`."""

    first: int
    sites: tuple[instrumentation.Site, ...]

    def __contains__(self, number: int) -> bool:
        return self.first <= number < self.first + len(self.sites)


@dataclasses.dataclass(frozen=True, slots=True)
class Observed:
    """The result of `Recorder.collect`; fields as in `protocol.Traced`."""

    seen: tuple[protocol.Seen, ...] = ()
    observations: tuple[protocol.Observation, ...] = ()


class ObservationTable:
    """Observations under construction: values by site, with shared texts."""

    def __init__(self) -> None:
        self.numbers: dict[protocol.Seen, int] = {}
        self.rows: dict[tuple[str, instrumentation.Place], tuple[dict[int, None], int]] = {}

    def gather(
        self,
        contexts: Iterable[Sites],
        instances: dict[tuple[str, str], InstrumentedChunk],
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
                if name is None or not values.described:
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

    def add(self, chunk: str, place: instrumentation.Place, values: SiteValues) -> None:
        row, more = self.rows.setdefault((chunk, place), ({}, 0))
        for seen in values.described.values():
            row[self.numbers.setdefault(seen, len(self.numbers))] = None
        self.rows[chunk, place] = (row, more + len(values.more))

    def observed(self) -> Observed:
        observations = []
        for (chunk, place), (row, more) in sorted(self.rows.items(), key=_where):
            span = protocol.Span(chunk, place.line, place.column, place.end_line, place.end_column)
            kept = tuple(row)[: protocol.OBSERVED_VALUES]
            observations.append(
                protocol.Observation(span, place.kind, kept, more + len(row) - len(kept))
            )
        return Observed(tuple(self.numbers), tuple(observations))


def _where(item: tuple[tuple[str, instrumentation.Place], object]) -> tuple[str, int, int]:
    (chunk, place), _ = item
    return chunk, place.line, place.column
