"""What a fix is good for, in figures: before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.compiler.protocol import Compiled
from jaxsight.engine.kernels import short_size
from jaxsight.tracer.protocol import Outlined, Traced

_SHARE = 0.8
"""Equations and seconds are told of when less than this share of them is left."""
_LONG = 0.5
"""Seconds that are worth a word."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one form of a function costs. `compiled` is for the first target, where it was compiled."""

    equations: int
    constants: int
    folding: float
    compiled: Compiled | None = None

    @staticmethod
    def of(traced: Traced, outlined: Outlined, compiled: Compiled | None) -> Figures:
        """Read off what is known of a function."""
        return Figures(
            traced.equations,
            sum(size for _, size in traced.constants),
            sum(fold.seconds for fold in outlined.folds),
            compiled,
        )

    @property
    def kernels(self) -> tuple[int, int, int]:
        """Kernels, launches, bytes of temporaries."""
        if self.compiled is None:
            return (0, 0, 0)
        graph = self.compiled.graph
        return graph.kernel_count, graph.launch_count, self.compiled.memory.temporaries


def fewer(before: Figures, after: Figures) -> bool:
    """Whether less is launched or stored, and nothing is more."""
    if before.compiled is None or after.compiled is None:
        return False
    pairs = list(zip(before.kernels, after.kernels, strict=True))
    return any(b > a for b, a in pairs) and not any(a > b for b, a in pairs[:2])


def words(before: Figures, after: Figures) -> Iterator[str]:
    """`kernels 2 → 1`, `temp 512 KiB → 0 B`, what changed alone."""
    if before.compiled is not None and after.compiled is not None:
        kernels, launches, temp = zip(before.kernels, after.kernels, strict=True)
        for name, (was, now) in (("kernels", kernels), ("launches", launches)):
            if was != now and not (name == "launches" and launches == kernels):
                yield f"{name} {was} → {now}"
        if temp[0] != temp[1] and min(temp) >= 0:
            yield f"temp {short_size(temp[0])} → {short_size(temp[1])}"
    if before.constants != after.constants:
        yield f"constants {short_size(before.constants)} → {short_size(after.constants)}"
    if before.folding >= _LONG and after.folding < before.folding * _SHARE:
        yield f"folding {_seconds(before.folding)} → {_seconds(after.folding)}"
    if after.equations < before.equations * _SHARE:
        yield f"equations {before.equations} → {after.equations}"
    if before.compiled is not None and after.compiled is not None:
        was_s, now_s = before.compiled.seconds, after.compiled.seconds
        if was_s >= _LONG and now_s < was_s * _SHARE:
            yield f"compile {_seconds(was_s)} → {_seconds(now_s)}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == 0 else f"{seconds:.1f} s"
