"""The traces that a tracer keeps for later requests: only a few, the most recently used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jax.stages import Traced

from jaxsight.lru import Recent
from jaxsight.tracer.calls.stateful_call import Outcome
from jaxsight.tracer.compat import config, contexts, lowering, traces
from jaxsight.tracer.failures import refusal

Settings = tuple[Mapping[str, object], ...]
"""Options of `jax.config`, and those of the thread."""

_MOST_TRACES = 16
"""Traces that are kept, with their jaxprs; a request about another one traces again."""


@dataclass(frozen=True, slots=True)
class KeptTrace:
    """A trace as JAX's `Traced` stage.

    `stage` is compiled; `shown` is for users, without results that only a library's `jit` returns.
    """

    stage: Traced
    shown: Traced
    outcome: Outcome
    settings: Settings
    """Settings of the trace, as JAX traces functions of its own during lowering."""
    axes: tuple[str, ...]
    """The named axes of the program around the function, which is not traced."""
    values: Mapping[str, object]
    """Values of flat arguments by JAX's names of them (`params['w']`), if they were asked for."""

    @staticmethod
    def of(stage: Traced, outcome: Outcome, values: Mapping[str, object]) -> KeptTrace:
        """Keep a trace with the current settings, and with values of its arguments."""
        shown = lowering.without_first(stage, outcome.markers)
        return KeptTrace(stage, shown, outcome, _settings(), traces.named_axes(), values)


class Traces:
    """The traces of the process, by the `id` of their requests."""

    def __init__(self) -> None:
        self._traces: Recent[int, KeptTrace] = Recent(_MOST_TRACES)

    def keep(self, id: int, trace: KeptTrace) -> None:
        """Keep a trace, and drop the one that was not used for the longest time."""
        self._traces.put(id, trace)

    def of(self, id: int) -> KeptTrace:
        """Return an earlier trace.

        Raises:
            UserError: it is no longer kept.
        """
        trace = self._traces.get(id)
        if trace is None:
            raise refusal("find", f"trace {id} is no longer kept", type="LookupError")
        return trace


@contextlib.contextmanager
def under(settings: Settings) -> Iterator[None]:
    """Restore JAX's settings of a trace within the context."""
    before = _settings()
    _change(before, settings)
    try:
        yield
    finally:
        _change(settings, before)


def _settings() -> Settings:
    return config.values(), contexts.values()


def _change(now: Settings, wanted: Settings) -> None:
    for write, old, new in zip((config.update, contexts.enter), now, wanted, strict=True):
        for name, value in new.items():
            if old[name] is not value and old[name] != value:
                write(name, value)
