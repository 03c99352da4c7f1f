"""Collect the values at sites into observations for the server."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from jaxsight.rewriting.rewriter import Site, SourceRange
from jaxsight.tracer.observation.observed_values import Sites, SiteValues
from jaxsight.wire.chunks import Span
from jaxsight.wire.observations import OBSERVED_VALUES, Observation, Seen


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

    seen: tuple[Seen, ...] = ()
    observations: tuple[Observation, ...] = ()


class ObservationTable:
    """Observations under construction: values by site, with shared texts."""

    def __init__(self) -> None:
        self.numbers: dict[Seen, int] = {}
        self.rows: dict[tuple[str, SourceRange], tuple[dict[int, None], int]] = {}

    def gather(
        self,
        contexts: Iterable[Sites],
        instances: dict[tuple[str, str], InstrumentedChunk],
        functions: frozenset[tuple[str, str, int]] = frozenset(),
    ) -> frozenset[tuple[str, str, int]]:
        """Add observations in functions that are not in `functions`, and return their functions.

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
                if scope in functions:
                    continue
                scopes.add(scope)
                for source_range in site.ranges:
                    self.add(name[0], source_range, values)
        return frozenset(scopes)

    def add(self, chunk: str, source_range: SourceRange, values: SiteValues) -> None:
        row, more = self.rows.setdefault((chunk, source_range), ({}, 0))
        for description in values.described.values():
            row[self.numbers.setdefault(description, len(self.numbers))] = None
        self.rows[chunk, source_range] = (row, more + len(values.more))

    def observed(self) -> Observed:
        rows = [
            (Span(chunk, at.line, at.column, at.end_line, at.end_column), at.kind, row, more)
            for (chunk, at), (row, more) in self.rows.items()
        ]
        rows.sort(key=lambda row: (row[0].chunk, row[0].line, row[0].column))
        observations = []
        for span, kind, row, more in rows:
            values = tuple(row)[:OBSERVED_VALUES]
            observations.append(Observation(span, kind, values, more + len(row) - len(values)))
        return Observed(tuple(self.numbers), tuple(observations))
