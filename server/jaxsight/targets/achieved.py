"""Measured times of kernels, beside the estimates of the roofline model and what they achieve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from jaxsight.targets.roofline import at_peak, estimate
from jaxsight.targets.target import Target
from jaxsight.wire.kernel_graph import Graph, Kernel
from jaxsight.wire.messages.measuring import KernelTime

Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class MeasuredKernel(Generic[Place]):
    """A row: what a kernel, or something else on the device, took in one run."""

    name: str
    """The HLO's instruction."""
    index: int | None
    """The kernel's index in the graph; `None` if the graph has no kernel of this name."""
    calls: float
    seconds: float
    share: float
    """Its part of the time of all rows, from 0 to 1."""
    lines: tuple[Place, ...] = ()
    """The lines that it computes, or else those that it feeds."""
    estimate_seconds: float | None = None
    bytes_per_second: float | None = None
    """The bytes that it reads and writes, by its time; `None` if they are not known."""
    flops_per_second: float | None = None
    arithmetic_share: float | None = None
    """The time that the busiest unit needs for it at the rate of the data sheet, by its time."""
    bandwidth_share: float | None = None
    """`bytes_per_second` by the bandwidth of the chip's data sheet; above 1 from its caches."""

    @property
    def ratio(self) -> float | None:
        """Measured by estimated time; `None` without an estimate."""
        return self.seconds / self.estimate_seconds if self.estimate_seconds else None


def measured_kernels(
    graph: Graph,
    times: Iterable[KernelTime],
    target: Target,
    lines: Callable[[Kernel], Iterable[Place]],
    others: Callable[[], Graph],
) -> Iterator[MeasuredKernel[Place]]:
    """Yield a row for each time, in their order.

    A kernel in a profile has the name of an instruction of the optimized HLO, and so have the
    kernels of the graph: both are made of the same program.

    Args:
        graph: the kernels.
        times: those of one run.
        target: the device that was measured, for the estimates.
        lines: returns the lines of a kernel.
        others: returns the graph of the HLO that was run, for names that `graph` does not have: a
            GPU's programs may be autotuned in another way each time.
    """
    times = list(times)
    indices = {kernel.name: index for index, kernel in enumerate(graph.kernels)}
    run: Mapping[str, Kernel] = {}
    if any(time.name not in indices for time in times):
        run = {kernel.name: kernel for kernel in others().kernels}
    everything = sum(time.seconds for time in times)
    for time in times:
        index = indices.get(time.name)
        kernel = graph.kernels[index] if index is not None else run.get(time.name)
        share = time.seconds / everything if everything else 0.0
        if kernel is None:
            yield MeasuredKernel(time.name, None, time.calls, time.seconds, share)
            continue
        # Of a loop of unknown length, the profile knows how often it ran.
        is_known = index is not None and all(
            graph.loops[loop].trips is not None for loop in kernel.loops
        )
        runs = kernel.runs if is_known else max(1.0, time.calls)
        work, flops = kernel.work, kernel.flops * runs
        moved = (work.read + work.written) * runs if work is not None else 0
        rate = moved / time.seconds if moved and time.seconds else None
        least = at_peak(work, target) if work is not None else None
        bandwidth = target.chip.bandwidth if target.chip is not None else 0.0
        yield MeasuredKernel(
            time.name,
            index,
            time.calls,
            time.seconds,
            share,
            tuple(lines(kernel)),
            estimate(kernel, target) if is_known else None,
            rate,
            flops / time.seconds if flops and time.seconds else None,
            least * runs / time.seconds if least is not None and time.seconds else None,
            rate / bandwidth if rate is not None and bandwidth else None,
        )
