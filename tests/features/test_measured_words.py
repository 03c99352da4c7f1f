"""What is said of a measurement."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from jaxsight.features.measuring import timing
from jaxsight.queries.memory import Measurement
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.targets.target import parse
from jaxsight.wire.messages.measuring import (
    Conditions,
    KernelTime,
    Measured,
    MeasuredRatio,
    ProgramTimes,
    Spread,
)

QUIET = Conditions("cpu", "cpu", "0.12", "0.12", cores=8, load=0.1, others=0.1)
TIMES = ProgramTimes(
    Spread(412e-6, 409e-6, 418e-6, 411e-6, 413e-6, 401e-6, 310), 380e-6, 12e-6, 20e-6
)


class _NotTraced:
    """An answer without a trace, as far as words are concerned."""

    reply = None


def measurement(times: ProgramTimes = TIMES, conditions: Conditions = QUIET) -> Measurement:
    answer = cast("Answer", _NotTraced())
    return Measurement(answer, parse("cpu"), Measured(0, times, conditions))


def said(times: ProgramTimes = TIMES, conditions: Conditions = QUIET) -> str:
    return "\n".join(timing.facts(measurement(times, conditions)))


def test_the_headline_has_the_median_and_the_quartiles() -> None:
    assert timing.wall(measurement()) == "412 µs"
    assert timing.headline(TIMES) == "412 µs (quartiles 409 µs–418 µs, 310 runs)"
    single = replace(TIMES, wall=replace(TIMES.wall, runs=1))
    assert timing.headline(single) == "412 µs (1 run)"


def test_time_without_kernels_is_said_where_it_matters() -> None:
    assert "device busy for 380 µs of 412 µs" in said()
    assert "between kernels" not in said()
    waiting = replace(TIMES, device_seconds=100e-6, between_seconds=200e-6)
    assert "device busy for 100 µs of 412 µs: it mostly waits for the host" in said(waiting)
    assert "between kernels: 200 µs" in said(waiting)
    assert "device busy all the time" in said(replace(TIMES, device_seconds=430e-6))
    slowed = said(replace(TIMES, device_seconds=824e-6))
    assert "profiled runs took at least 2 times as long: times of kernels are too long" in slowed
    missing = replace(TIMES, profile_problem="another profile is being made")
    assert "no times of kernels: another profile is being made" in said(missing)


def test_transfers_memory_and_random_arguments_are_said() -> None:
    times = replace(
        TIMES,
        transfers=(KernelTime("MemcpyH2D", 2, 5e-6),),
        peak_bytes=3 << 20,
        drawn=("x", "params['w']"),
    )
    found = said(times)
    assert "MemcpyH2D: 5.0 µs, 2 times" in found
    assert "peak memory of the device 3 MiB" in found
    assert "random arguments: x, params['w']" in found


def test_what_disturbs_is_said() -> None:
    busy = replace(QUIET, others=1.3)
    assert "other processes kept 1.3 of 8 cores busy: times may be longer" in said(TIMES, busy)
    unknown = replace(QUIET, others=-1.0, load=2.5)
    assert "load 2.5 before: times may be longer" in said(TIMES, unknown)
    slow = replace(QUIET, governor="powersave")
    assert "the CPU's frequency varies (governor powersave)" in said(TIMES, slow)
    assert "idle machine" not in said()


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (
            MeasuredRatio(2.0, 1.9, 2.1),
            "fast takes 0.5 times as long as slow (95 % interval 0.476–0.526)",
        ),
        (
            MeasuredRatio(1.01, 0.97, 1.04),
            "no difference found between fast and slow: ratio 0.99 (95 % interval 0.962–1.03)",
        ),
        (
            MeasuredRatio(0.05, 0.04, 0.06),
            "fast takes 20 times as long as slow (95 % interval 17–25)",
        ),
    ],
)
def test_two_functions_are_compared_with_an_interval(ratio: MeasuredRatio, expected: str) -> None:
    assert timing.compared(ratio, "fast", "slow") == expected
