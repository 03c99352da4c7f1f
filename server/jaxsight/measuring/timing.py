"""Timed runs until their median is known, and the statistics of them.

A run is timed from its call until its results are ready, by `time.perf_counter`. Samples are not
assumed to be normally distributed: all figures are order statistics, or are resampled.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxsight.wire.messages.measuring import MeasuredRatio, MeasuringLimits, Spread

PRECISION = 0.01
"""Half the confidence interval of the median, relative to it, at which runs end: a choice."""
_FEWEST = 20
"""Runs before a spread may end them, a choice: two in each block."""
_BLOCKS = 10
"""Blocks of successive runs whose medians tell how well the median is known, a choice: the second
to the ninth of ten are an interval of 98 % (binomial). Neighbouring runs are alike, as what else
the machine does lasts longer than one: an interval of single runs promises too much (20 runs of
100 µs were known to 1 %, and 20 % off a second later)."""
_LEAST_SECONDS = 0.5
"""Seconds of runs before a spread may end them, a choice: some turns of a scheduler with others."""
_MOST = 20_000
"""Runs that are kept, a choice: those of 50 µs in a second."""
WARM_UP = 0.3
"""Seconds of runs before the timed ones, a choice: caches fill, a CPU reaches its frequency, and
the allocator keeps what it got. `x + 1` of 4 MiB takes 128 µs in the first 0.1 s, then 90 µs."""
_RESAMPLES = 1_000
"""Resampled ratios, of whose distribution the interval is read: its ends are the 25th ones."""


@dataclass(frozen=True, slots=True)
class TimedRun:
    """How a program is run: `prepare` returns what `call` gets, and is not timed.

    `call` has to return when the results are ready.
    """

    call: Callable[[object], object]
    prepare: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        """Run the program once, and return the seconds."""
        prepared = self.prepare()
        begin = time.perf_counter()
        self.call(prepared)
        return time.perf_counter() - begin


def warm_up(runs: Sequence[TimedRun]) -> None:
    """Run each program once, and until `WARM_UP` seconds are over."""
    for run in runs:
        end = time.perf_counter() + WARM_UP
        run()
        while time.perf_counter() < end:
            run()


def timed(runs: Sequence[TimedRun], limits: MeasuringLimits) -> list[list[float]]:
    """Return the seconds of runs of each program.

    Several programs alternate, forwards and backwards (`a b b a`), so that what changes slowly on
    the machine changes all of them alike. All programs have equally many runs.

    Args:
        runs: one for each program.
        limits: `runs` is their number; with 0, they end when the median of each program is known
            to `PRECISION`, or after `seconds` of each.
    """
    samples: list[list[float]] = [[] for _ in runs]
    order = list(range(len(runs)))
    begin = time.perf_counter()
    end = begin + limits.seconds * len(runs)
    most = limits.runs or _MOST
    look_at = _FEWEST
    while len(samples[0]) < most:
        for index in order:
            samples[index].append(runs[index]())
        order.reverse()
        count = len(samples[0])
        if limits.runs:
            continue
        now = time.perf_counter()
        if now >= end:
            break
        if count >= look_at and now >= begin + _LEAST_SECONDS * len(runs):
            if all(map(_is_known, samples)):
                break
            look_at = math.ceil(1.25 * count)  # each look sorts all
    return samples


def spread(samples: Sequence[float]) -> Spread:
    """Return how seconds of runs, in their order, are spread; there must be at least one."""
    ordered = sorted(samples)
    count = len(ordered)
    low, high = _interval(samples)
    quartile1, _, quartile3 = statistics.quantiles(ordered, n=4) if count > 1 else ordered * 3
    return Spread(
        statistics.median(ordered), quartile1, quartile3, low, high, ordered[0], count
    )  # fmt: skip


def _is_known(samples: Sequence[float]) -> bool:
    low, high = _interval(samples)
    return high - low <= 2 * PRECISION * statistics.median(samples)


def _interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return an interval of the median of successive runs; of few runs, their extremes."""
    count = len(samples)
    if count < _FEWEST:
        return min(samples), max(samples)
    ends = [count * block // _BLOCKS for block in range(_BLOCKS + 1)]
    medians = sorted(statistics.median(samples[a:b]) for a, b in itertools.pairwise(ends))
    return medians[1], medians[-2]


def ratio(first: Sequence[float], second: Sequence[float]) -> MeasuredRatio:
    """Return how much longer `second` takes than `first`, which ran alternately.

    Blocks of neighbouring pairs are resampled, not single runs: neighbours are alike, because of
    what else the machine does (Künsch 1989, the moving block bootstrap). Blocks have the cube root
    of the number of runs, the usual choice.
    """
    pairs = np.asarray([first, second])
    count = pairs.shape[1]
    medians = np.median(pairs, axis=1)
    of_all = float(medians[1] / medians[0])
    if count < _FEWEST:
        each = np.sort(pairs[1] / pairs[0])
        return MeasuredRatio(of_all, float(each[0]), float(each[-1]))
    length = round(count ** (1 / 3))
    generator = np.random.default_rng(0)
    blocks = math.ceil(count / length)
    ratios = np.empty(_RESAMPLES)
    for at in range(_RESAMPLES):
        starts = generator.integers(0, count - length + 1, size=blocks)
        chosen = (starts[:, None] + np.arange(length)).ravel()[:count]
        resampled = np.median(pairs[:, chosen], axis=1)
        ratios[at] = resampled[1] / resampled[0]
    low, high = np.quantile(ratios, (0.025, 0.975))
    return MeasuredRatio(of_all, float(low), float(high))
