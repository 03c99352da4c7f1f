"""Observations of inner jaxprs, which JAX caches without running the code of their functions again.

Observations made while such a jaxpr was traced are kept, and found again by the jaxpr in the next
result.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from jaxsight.tracer.compat import jaxprs, traces
from jaxsight.tracer.observation.observation_table import InstrumentedChunk
from jaxsight.tracer.observation.observed_values import Sites

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

    def trim(self) -> None:
        """Forget the oldest jaxprs."""
        while len(self._by_place) > _JAXPRS:
            self._by_place.popitem(last=False)

    def forget(self, chunk: InstrumentedChunk) -> None:
        """Remove the observations in an execution of a chunk."""
        for staged, variants in list(self._by_place.items()):
            for variant, contexts in list(variants.items()):
                if chunk.first not in variant.instances:
                    continue
                del variants[variant]
                remaining = variant.instances - {chunk.first}
                if remaining:
                    for context in contexts:
                        for number in [number for number in context.sites if number in chunk]:
                            del context.sites[number]
                    variants[Variant(variant.inputs, remaining)] = contexts
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
            variants = sorted(
                (variant for variant in reversed(by_variant) if variant.instances & instances),
                key=lambda variant: -len(variant.instances & instances),
            )
            if not variants:
                continue
            # A transformation may have changed the inputs: `vmap` adds axes.
            same = next(
                (variant for variant in variants if variant.inputs == reached.inputs),
                next((v for v in variants if _is_without_axes(v.inputs, reached.inputs)), None),
            )
            if same is None and any(
                id(context.sites) in ran for variant in variants for context in by_variant[variant]
            ):
                continue
            # If it is another one, use the most likely one.
            contexts = by_variant[same or variants[0]]
            new = [context for context in contexts if id(context.sites) not in ran]
            reused += [context.moved(reached.inside) for context in new]
            ran |= {id(context.sites) for context in new}
        return reused


def _is_without_axes(inputs: Sequence[object], mapped: Sequence[object]) -> bool:
    """Return whether these may be the inputs of a function that `vmap` maps over others."""
    return len(inputs) == len(mapped) and all(
        getattr(own, "dtype", None) == getattr(other, "dtype", None)
        and _is_part(getattr(own, "shape", ()), getattr(other, "shape", ()))
        for own, other in zip(inputs, mapped, strict=True)
    )


def _is_part(shape: Sequence[object], whole: Sequence[object]) -> bool:
    """Return whether a shape is another one without some axes."""
    remaining = iter(whole)
    return all(size in remaining for size in shape)
