"""All that a panel shows of one function: its kernel graph on the target, where each equation is
written now, and what it was when the file was saved.

Plain data in one piece, so that what is drawn together belongs together. The texts (jaxpr, HLO…)
are documents of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.compiler.protocol import Compiled
from jaxsight.compiler.roofline import estimate
from jaxsight.engine.answers import Caveat
from jaxsight.engine.compiling import Result
from jaxsight.engine.kernels import Kernels, change, headline, how, memory_lines, undecided
from jaxsight.engine.text import Range
from jaxsight.engine.views import View
from jaxsight.workers.compilers import Trouble

_LONGEST = 200
"""Characters of what the user wrote: a whole loop may be one expression."""


@dataclass(frozen=True, slots=True)
class Part:
    """One equation of the program: its path and primitive, what it gives, what the user wrote there
    and where that stands now.
    """

    path: str
    primitive: str
    outputs: tuple[str, ...]
    text: str = ""
    range: Range | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a panel draws. `reasons` and `seconds` belong to the graph's kernels, in their order."""

    compiled: Compiled
    headline: str
    """`2 kernels · 2 launches · temp 512 KiB · h100`"""
    device: str
    """Which device, and how it was compiled for."""
    reasons: tuple[str, ...]
    """Why each kernel ends, in the user's words."""
    seconds: tuple[float | None, ...]
    """A roofline estimate of all launches of each kernel; `None` for chips without figures."""
    equations: tuple[Part, ...]
    before: Compiled | None = None
    """What it was when the file was saved, where that was something else."""
    notes: tuple[str, ...] = ()
    """Constants, workspaces and donated buffers, and what values decide of the launches, in words.
    """
    change: str = ""
    """What changed since, as `kernels 7 → 5`, or `the same`; empty where nobody knows what it was
    on this target.
    """


@dataclass(frozen=True, slots=True)
class Panel:
    """A function as a panel shows it. Either `drawn` is there, or `trouble` says why not."""

    path: str
    function: str
    range: Range
    """The whole definition."""
    chosen: str
    """The example set in use; the unnamed first one is the empty string."""
    sets: tuple[str, ...]
    target: str
    stale: bool = False
    drawn: Drawn | None = None
    trouble: str = ""
    caveats: tuple[Caveat, ...] = ()
    """What of the module the answer leaves out."""


def drawn(view: View, result: Result, before: Compiled | None) -> Drawn | str:
    """The graph with its places, or why there is none."""
    kernels = Kernels.of(view, result)
    if kernels is None:
        assert isinstance(result.outcome, Trouble)
        return result.outcome.message
    compiled, graph = kernels.compiled, kernels.graph
    if before is not None and before.target != compiled.target:
        before = None
    return Drawn(
        compiled,
        headline(compiled, kernels.target),
        f"{kernels.target.title}, compiled {how(compiled)}",
        tuple(kernels.reason(kernel) for kernel in graph.kernels),
        tuple(estimate(kernel, kernels.target) for kernel in graph.kernels),
        tuple(
            Part(
                path,
                each.primitive,
                each.outputs,
                _short(kernels.places.text(path)),
                kernels.place(path),
            )
            for path, each in kernels.equations.items()
        ),
        before if before is not compiled else None,
        (*memory_lines(kernels), *undecided(kernels)),
        change(before, compiled) if before is not None else "",
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
