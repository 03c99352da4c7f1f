"""Which results take the buffers of which inputs: `jit(donate_argnums=…)`, as XLA keeps it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_ALIASES = re.compile(r"\binput_output_alias=\{((?:[^{}]|\{[^{}]*\})*)\}")
_ALIAS = re.compile(r"\{(\d*)\}: \((\d+), \{\}")


@dataclass(frozen=True, slots=True)
class Alias:
    """Result `result` of a program lies in the buffer of its parameter `parameter`; both count from
    0.
    """

    result: int
    parameter: int


@dataclass(frozen=True, slots=True)
class Donation:
    """An input whose buffer is donated, and the result that takes it; empty where none does."""

    name: str
    result: str = ""

    def __str__(self) -> str:
        if self.result:
            return f"donated: {self.name} → {self.result}"
        return f"donated but unused: {self.name}"


def aliases(hlo: str) -> tuple[Alias, ...]:
    """Return what the header of an HLO module says of buffers that results share with
    parameters.
    """
    header = _ALIASES.search(hlo.partition("\n")[0])
    if header is None:
        return ()
    return tuple(
        Alias(int(result or 0), int(parameter)) for result, parameter in _ALIAS.findall(header[1])
    )


def donations(
    kept: Sequence[Alias],
    count: int,
    parameters: Sequence[str],
    results: Sequence[str],
    donated: Sequence[str],
) -> tuple[Donation, ...]:
    """Return the donated inputs in order, each with the result that takes its buffer.

    Args:
        kept: of the compiled program.
        count: how many parameters the compiled program has.
        parameters: the names of those that the program had; nothing is returned where XLA has
            others.
        results: the names of the results.
        donated: the names of the donated inputs, those among them that the program does not use.
    """
    if count != len(parameters):
        return ()
    taken = {parameters[alias.parameter]: alias.result for alias in kept}
    return tuple(
        Donation(name, results[taken[name]] if name in taken else "")
        for name in donated
        if taken.get(name, 0) < len(results)
    )
