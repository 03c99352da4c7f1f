"""What a device did in a run, as the profiler tells."""

from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsight.measuring.programs import DeviceRun, DeviceRuns, profiled
from jaxsight.profiles.sources import NoProfile
from jaxsight.profiles.timeline import Executed

NANO = 1000


def event(op: str, start: int, end: int, title: str = "") -> Executed:
    return Executed(start * NANO, end * NANO, "GPU:0", "jit_f", op, title)


def test_kernels_at_the_same_time_count_once() -> None:
    run = DeviceRun(0, 100 * NANO, [event("a", 10, 40), event("b", 20, 60), event("c", 80, 90)])
    profile = DeviceRuns([run])
    assert profile.device_seconds == pytest.approx(60e-9)
    assert profile.between_seconds == pytest.approx(20e-9)
    assert profile.host_seconds == pytest.approx(20e-9)


def test_a_run_that_was_interrupted_has_no_weight() -> None:
    runs = [DeviceRun(0, 1000 * NANO, [event("a", 0, length)]) for length in (10, 11, 900)]
    [time] = DeviceRuns(runs).kernels
    assert (time.name, time.calls, time.seconds) == ("a", 1, pytest.approx(11e-9))


def test_copies_outside_of_the_hlo_are_transfers() -> None:
    run = DeviceRun(0, 9, [event("", 0, 1, "MemcpyH2D"), event("copy.1", 1, 2, "MemcpyD2D")])
    profile = DeviceRuns([run])
    assert [each.name for each in profile.transfers] == ["MemcpyH2D"]
    assert [each.name for each in profile.kernels] == ["copy.1"]


def compiled(function: object, x: jax.Array) -> object:
    executable = jax.jit(function).lower(x).compile()  # type: ignore[arg-type]
    jax.block_until_ready(executable(x))
    return lambda _: jax.block_until_ready(executable(x))


def test_events_belong_to_their_runs() -> None:
    call = compiled(lambda x: jnp.sort(x) + 1, jnp.arange(4096.0))
    profile = profiled("cpu", call, 5, lambda: jax.block_until_ready(jnp.ones(3) * 2))  # type: ignore[arg-type]
    assert len(profile.runs) == 5
    counts = {len(run.events) for run in profile.runs}
    assert len(counts) == 1
    for run in profile.runs:
        assert all(run.begin <= each.start <= each.end <= run.end for each in run.events)
    assert sum(each.seconds for each in profile.kernels) > 0


def test_runs_that_get_memory_from_the_system_are_left_out() -> None:
    run = compiled(jnp.sin, jnp.ones(8))
    numbers = itertools.count()

    def call(_: object) -> None:
        run(None)  # type: ignore[operator]
        if next(numbers) % 2:
            np.ones(1 << 23)  # 64 MiB, which malloc never keeps

    assert len(profiled("cpu", call, 4).runs) == 4
    assert next(numbers) in (8, 9), "one before the profile, and every other one of 7 or 8"


def test_a_loop_counts_by_what_is_inside() -> None:
    call = compiled(
        lambda x: jax.lax.fori_loop(0, 5, lambda i, c: jnp.sort(c)[::-1] * 2, x), jnp.ones(4096)
    )
    profile = profiled("cpu", call, 2)  # type: ignore[arg-type]
    assert not any(each.name.startswith("while") for each in profile.kernels)
    assert any(each.calls % 5 == 0 for each in profile.kernels)


def test_the_time_of_a_small_loop_is_not_lost() -> None:
    call = compiled(lambda x: jax.lax.fori_loop(0, 4, lambda i, c: jnp.sin(c), x), jnp.ones(1000))
    profile = profiled("cpu", call, 2)  # type: ignore[arg-type]
    # One kernel since JAX 0.11, around which XLA has a call; four before.
    assert max(profile.kernels, key=lambda each: each.seconds).calls in (1, 4)


def test_a_product_lasts_until_its_threads_are_done() -> None:
    call = compiled(lambda x: x @ x, jnp.ones((1024, 1024)))
    profile = profiled("cpu", call, 5)  # type: ignore[arg-type]
    # The event of the kernel itself is 0.1 of the run on JAX 0.8.
    assert statistics.median(run.busy / (run.end - run.begin) for run in profile.runs) > 0.5


def test_a_profile_within_another_is_refused(tmp_path: Path) -> None:
    with jax.profiler.trace(str(tmp_path)), pytest.raises(NoProfile, match="does not start"):
        profiled("cpu", lambda _: None, 1)


def test_a_device_that_does_nothing_has_no_profile() -> None:
    with pytest.raises(NoProfile, match="nothing about the device"):
        profiled("cpu", lambda _: None, 1)
