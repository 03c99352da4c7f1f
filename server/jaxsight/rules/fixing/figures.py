"""The effect of a fix in figures: before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.rule import LAUNCHED, MOVED, STORED, TIME
from jaxsight.targets.roofline import total
from jaxsight.targets.target import parse, recognized
from jaxsight.text import units
from jaxsight.wire.messages.compiling import Compiled, Folding
from jaxsight.wire.messages.replies import Traced

_SHARE = 0.8
"""Equations and seconds are reported if less than this share of them remains, a choice: a larger
one reports how compile times vary, a smaller one hides what a fix saves."""
_COUNTS, _FEW = 1.02, 64
"""Bytes count as more above this factor plus so many bytes, seconds above this factor, a choice:
less refuses fixes for paddings and counters, more accepts further temporaries."""
_LONG = 0.5
"""Seconds of a compile that are worth reporting: nobody waits for shorter ones."""


@dataclass(frozen=True, slots=True)
class FormCosts:
    """The costs of one form of a function.

    `compiled` is its program for the first target, if it was compiled.
    """

    equations: int
    constants: int
    compiled: Compiled | None = None
    folding: Folding | None = None
    """Its compile times with constant folding, if they were measured."""

    @staticmethod
    def of(traced: Traced, compiled: Compiled | None, folding: Folding | None) -> FormCosts:
        """Return the costs of a function."""
        constants = sum(size for _, size in traced.constants)
        return FormCosts(traced.equations, constants, compiled, folding)

    @property
    def kernels(self) -> tuple[int, int]:
        """The number of kernels, and of their launches."""
        if self.compiled is None:
            return 0, 0
        return self.compiled.graph.kernel_count, self.compiled.graph.launch_count

    @property
    def stored(self) -> int:
        """Bytes of temporaries.

        Raises:
            Incomplete: the compile ended before they were known; as for all functions below.
        """
        return max(self.compiled.temporaries, 0) if self.compiled is not None else 0

    @property
    def moved(self) -> int:
        """Bytes that all launches read and write."""
        kernels = self.compiled.graph.kernels if self.compiled is not None else ()
        return sum((kernel.bytes_in + kernel.bytes_out) * kernel.launches for kernel in kernels)

    @property
    def communicated(self) -> int:
        """Bytes that the collectives move on each device."""
        return self.compiled.graph.moved_bytes if self.compiled is not None else 0

    @property
    def compiling(self) -> float:
        """The compile time in seconds, or a lower bound."""
        if self.folding is not None:
            return self.folding.folded
        return self.compiled.compile_seconds if self.compiled is not None else 0.0

    @property
    def time(self) -> float | None:
        """The estimated time on the target in seconds; `None` if a part of it is unknown."""
        if self.compiled is None:
            return None
        target = recognized(parse(self.compiled.target), self.compiled.device_kind)
        estimated = total(self.compiled.graph, target)
        return None if estimated is None or estimated.is_lower_bound else estimated.seconds


def _are_compiled(before: FormCosts, after: FormCosts) -> bool:
    return before.compiled is not None and after.compiled is not None


def fewer(before: FormCosts, after: FormCosts) -> bool:
    """Return whether less is launched, stored or moved."""
    return _are_compiled(before, after) and (
        more(after, before)
        or _grown(after.moved, before.moved)
        or _grown(after.stored, before.stored)
    )


def smaller(before: FormCosts, after: FormCosts) -> bool:
    """Return whether less is stored at once."""
    return _grown(after.stored, before.stored)


def _grown(before: int, after: int) -> bool:
    """Return whether bytes increased significantly."""
    return after > before * _COUNTS + _FEW


def more(before: FormCosts, after: FormCosts) -> bool:
    """Return whether more kernels are launched."""
    pairs = zip(before.kernels, after.kernels, strict=True)
    return _are_compiled(before, after) and any(now > was for was, now in pairs)


def slower(before: FormCosts, after: FormCosts) -> bool:
    """Return whether the estimated time on the target is longer."""
    was, now = before.time, after.time
    return was is not None and now is not None and now > was * _COUNTS


def too_slow(before: FormCosts, after: FormCosts, times: float) -> bool:
    """Return whether it may take more than so many times as long on the target.

    Without estimated times, as on CPUs, launches and moved bytes are compared instead: a fix does
    not change the arithmetic.
    """
    if not _are_compiled(before, after):
        return False
    was, now = before.time, after.time
    if was is not None and now is not None:
        return now > was * times
    launched, moved = (before.kernels[1], after.kernels[1]), (before.moved, after.moved)
    return any(is_now > had * times for had, is_now in (launched, moved))


PER_DEVICE = "per device"


def worse(before: FormCosts, after: FormCosts) -> frozenset[str]:
    """Return which figures are worse: launches, temporaries, traffic or estimated time."""
    if not _are_compiled(before, after):
        return frozenset()
    grown = {
        LAUNCHED: more(before, after),
        STORED: _grown(before.stored, after.stored),
        MOVED: _grown(before.moved, after.moved),
        TIME: slower(before, after),
    }
    return frozenset(name for name, is_worse in grown.items() if is_worse)


def words(before: FormCosts, after: FormCosts, *, timed: bool) -> Iterator[str]:
    """Yield the figures that changed: `kernels 2 → 1`, `temp 512 KiB → 0 B`.

    Args:
        timed: whether compile times are reported.
    """
    if _are_compiled(before, after):
        kernels, launches = zip(before.kernels, after.kernels, strict=True)
        for name, (was, now) in (("kernels", kernels), ("launches", launches)):
            if was != now and not (name == "launches" and launches == kernels):
                yield f"{name} {was} → {now}"
        stored, moved = (before.stored, after.stored), (before.moved, after.moved)
        has_stored = _grown(*stored) or _grown(*reversed(stored))
        if has_stored:
            yield f"temp {_sizes(*stored)}"
        if _grown(*moved) or (not has_stored and _grown(*reversed(moved))):
            yield f"memory traffic {_sizes(*moved)}"
        if slower(before, after):
            yield f"≈ time {units.time(before.time or 0)} → {units.time(after.time or 0)}"
    if before.constants != after.constants:
        yield f"constants {_sizes(before.constants, after.constants)}"
    if after.equations < before.equations * _SHARE:
        yield f"equations {before.equations} → {after.equations}"
    if before.communicated != after.communicated:
        yield f"moved {_sizes(before.communicated, after.communicated)} {PER_DEVICE}"
    if timed and _are_compiled(before, after):
        was_s, now_s = before.compiling, after.compiling
        if was_s >= _LONG and now_s < was_s * _SHARE:
            least = "> " if before.folding is not None and before.folding.is_ended else ""
            yield f"compile {least}{_seconds(was_s)} → {_seconds(now_s)}"


def _sizes(before: int, after: int) -> str:
    return f"{units.size(before)} → {units.size(after)}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 10 or seconds == 0 else f"{seconds:.1f} s"
