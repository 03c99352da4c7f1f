"""Runs, and the statistics of them."""

from __future__ import annotations

import random
import statistics

import pytest

from jaxsight.measuring.timing import PRECISION, TimedRun, ratio, spread, timed
from jaxsight.wire.messages.measuring import MeasuringLimits


def test_two_programs_alternate_forwards_and_backwards() -> None:
    order: list[str] = []
    runs = [TimedRun(lambda _, name=name: order.append(name)) for name in "ab"]  # type: ignore[misc]
    samples = timed(runs, MeasuringLimits(runs=4))
    assert "".join(order) == "abbaabba"
    assert [len(each) for each in samples] == [4, 4]


def test_what_is_prepared_is_passed_and_not_timed() -> None:
    counted = iter(range(3))
    got: list[object] = []
    timed([TimedRun(got.append, lambda: next(counted))], MeasuringLimits(runs=3))
    assert got == [0, 1, 2]


def test_runs_end_after_their_time() -> None:
    numbers = random.Random(0)

    def busy(_: object) -> None:
        sum(range(numbers.choice([10, 100_000])))  # the median of which is never known

    [samples] = timed([TimedRun(busy)], MeasuringLimits(seconds=0.05))
    assert 1 <= len(samples) < 20_000


def test_at_least_one_run_is_timed() -> None:
    [samples] = timed([TimedRun(lambda _: sum(range(10_000)))], MeasuringLimits(seconds=0.0))
    assert len(samples) == 1


def test_a_spread_has_order_statistics() -> None:
    found = spread([float(value) for value in range(1, 101)])
    assert (found.median, found.least, found.runs) == (50.5, 1.0, 100)
    assert found.quartile1 == pytest.approx(25.25)
    assert found.quartile3 == pytest.approx(75.75)
    # The medians of ten blocks are 5.5, 15.5, …; its bounds are the second and the ninth.
    assert (found.low, found.high) == (15.5, 85.5)


def test_a_single_run_is_its_own_spread() -> None:
    found = spread([2.0])
    assert (found.median, found.quartile1, found.quartile3, found.low, found.high) == (2.0,) * 5


def test_the_interval_holds_the_median_of_98_in_100_samples() -> None:
    numbers, held = random.Random(1), 0
    for _ in range(300):
        found = spread([numbers.expovariate(1.0) for _ in range(1000)])
        held += found.low <= 0.6931 <= found.high
    assert 0.95 <= held / 300 <= 1


def test_the_interval_knows_that_neighbours_are_alike() -> None:
    numbers, held = random.Random(3), 0
    for _ in range(300):
        slow = [numbers.choice((0.0, 0.5)) for _ in range(40)]  # what else the machine does
        found = spread([1 + each + numbers.uniform(0, 0.01) for each in slow for _ in range(25)])
        held += found.low <= 1.25 <= found.high
    assert held / 300 >= 0.8  # the interval of single runs holds it in a few of 100


def test_the_interval_of_a_ratio_holds_it_under_common_drift() -> None:
    numbers, held = random.Random(2), 0
    for _ in range(60):
        drift, first, second = 1.0, [], []
        for _ in range(100):
            drift *= numbers.uniform(0.99, 1.01)
            first.append(drift * numbers.uniform(1.0, 1.1))
            second.append(1.2 * drift * numbers.uniform(1.0, 1.1))
        found = ratio(first, second)
        assert found.low <= found.ratio <= found.high
        held += found.low <= 1.2 <= found.high
    assert held >= 51


def test_few_runs_have_the_extreme_ratios() -> None:
    found = ratio([1.0, 2.0, 4.0], [2.0, 2.0, 6.0])
    assert (found.ratio, found.low, found.high) == (1.0, 1.0, 2.0)


@pytest.mark.parametrize(("noise", "ends"), [(0.0, True), (0.02, True), (0.5, False)])
def test_runs_end_when_the_median_is_known(
    monkeypatch: pytest.MonkeyPatch, noise: float, ends: bool
) -> None:
    numbers, now = random.Random(4), 0.0

    def run(_: object) -> None:
        nonlocal now
        now += 0.01 * numbers.uniform(1 - noise, 1 + noise)

    monkeypatch.setattr("jaxsight.measuring.timing.time.perf_counter", lambda: now)
    [samples] = timed([TimedRun(run)], MeasuringLimits(seconds=3.0))
    found = spread(samples)
    assert (found.high - found.low <= 2 * PRECISION * found.median) is ends
    assert (now < 3.0) is ends
    assert statistics.median(samples) == found.median
