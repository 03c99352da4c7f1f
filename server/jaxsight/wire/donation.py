"""Which results reuse the buffers of which inputs: `jit(donate_argnums=…)`, as XLA applies it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Alias:
    """Result `result` of a program uses the buffer of its parameter `parameter` (from 0)."""

    result: int
    parameter: int


@dataclass(frozen=True, slots=True)
class Donation:
    """An input whose buffer is donated, and the result that reuses it; empty if there is none."""

    name: str
    result: str = ""

    def __str__(self) -> str:
        if self.result:
            return f"donated: {self.name} → {self.result}"
        return f"donated but unused: {self.name}"


def donations(
    aliases: Sequence[Alias],
    count: int,
    parameters: Sequence[str],
    results: Sequence[str],
    donated: Sequence[str],
) -> tuple[Donation, ...]:
    """Return the donated inputs in order, each with the result that reuses its buffer.

    Args:
        aliases: aliases of the compiled program.
        count: number of parameters of the compiled program.
        parameters: names of the parameters of the lowered program; if XLA changed their number,
            nothing is returned.
        results: names of the results.
        donated: names of the donated inputs, including those that the program does not use.
    """
    if count != len(parameters):
        return ()
    results_by_input = {parameters[alias.parameter]: alias.result for alias in aliases}
    return tuple(
        Donation(name, results[results_by_input[name]] if name in results_by_input else "")
        for name in donated
        if results_by_input.get(name, 0) < len(results)
    )
