"""A traced function is run on this machine's device, with the user's own values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jaxsight.tracer.failures import UserError
from jaxsight.wire.messages.measuring import Measured, MeasuringLimits
from jaxsight.wire.messages.requests import Measure
from tests.tracer.handlers.lab import Lab, lab

HEAD = "import jax, jax.numpy as jnp, numpy as np\n"
FEW = MeasuringLimits(runs=8)


def measured(tests: Lab, function: str, **inputs: str) -> Measured:
    request = tests.request(function, {}, inputs)
    trace = tests.ask(replace(request, with_values=True))
    return tests.ask(Measure(100, trace.id, limits=FEW))


def test_every_kernel_of_a_run_has_its_time() -> None:
    body = "def f(x, w):\n    return jnp.sort(jnp.tanh(x @ w) + 1, axis=-1)\n"
    found = measured(lab(HEAD + body), "f", x="f32[256,256]", w="f32[256,256]")
    times = found.program
    assert times.profile_problem == ""
    assert {time.name for time in times.kernels} <= set(times.hlo.replace("%", " ").split())
    assert all(time.calls == 1 and time.seconds > 0 for time in times.kernels)
    assert any(time.name.startswith("sort") for time in times.kernels)
    assert times.device_seconds > 0
    assert times.wall.least <= times.wall.quartile1 <= times.wall.median <= times.wall.quartile3
    assert times.wall.runs == 8
    assert set(times.drawn) == {"x", "w"}


def test_kernels_of_a_loop_are_called_in_each_iteration() -> None:
    body = (
        "def f(x):\n"
        "    return jax.lax.scan(lambda c, _: (jnp.sort(c)[::-1], None), x, None, length=7)[0]\n"
    )
    found = measured(lab(HEAD + body), "f", x="f32[4096]")
    calls = {time.name.partition(".")[0]: time.calls for time in found.program.kernels}
    assert calls["sort"] == 14  # XLA's CPU code copies what it sorts in place, as the same event
    assert sum(time.calls == 7 for time in found.program.kernels) >= 1
    assert "while" not in calls


def test_values_of_example_inputs_are_those_of_the_run() -> None:
    body = (
        "SEEN = []\n"
        "def f(x, n, table):\n"
        "    jax.debug.callback(lambda *v: SEEN.append([np.asarray(each) for each in v]), x, table['a'])\n"
        "    return x * n\n"
    )
    tests = lab(HEAD + body)
    found = measured(tests, "f", x="= jnp.arange(3.)", n="f32[]", table="= {'a': 7}")
    x, a = tests.namespace["SEEN"][0]
    assert list(x) == [0.0, 1.0, 2.0]
    assert a == 7
    assert found.program.drawn == ("n",)


def test_indices_are_drawn_from_the_whole_table() -> None:
    body = (
        "SEEN = []\n"
        "def f(table, ids):\n"
        "    jax.debug.callback(lambda v: SEEN.append(np.asarray(v)), ids)\n"
        "    return table[ids]\n"
    )
    tests = lab(HEAD + body)
    measured(tests, "f", table="f32[50000,2]", ids="i32[64]")
    ids = tests.namespace["SEEN"][0]
    assert ids.min() >= 0
    assert 10_000 < ids.max() < 50_000


def test_donated_arguments_are_there_in_every_run() -> None:
    body = (
        "import functools\n"
        "@functools.partial(jax.jit, donate_argnums=0)\n"
        "def f(x, y):\n    return x + y\n"
    )
    found = measured(lab(HEAD + body), "f", x="f32[64]", y="f32[64]")
    assert found.program.wall.runs == 8


def test_two_functions_alternate_and_have_a_ratio() -> None:
    body = "def f(x):\n    return jnp.sort(x)\ndef g(x):\n    return jnp.sort(x, axis=0) * 2\n"
    tests = lab(HEAD + body)
    first, second = tests.trace("f", x="f32[64]"), tests.trace("g", x="f32[65536]")
    found = tests.ask(Measure(100, first.id, second.id, MeasuringLimits(runs=25)))
    assert found.other is not None
    assert found.ratio is not None
    assert 1 < found.ratio.low <= found.ratio.ratio <= found.ratio.high
    assert found.other.wall.runs == found.program.wall.runs == 25


def test_errors_of_a_run_are_the_functions() -> None:
    body = (
        "def fails(v):\n    raise ValueError('no data')\n"
        "def f(x):\n    return jax.pure_callback(fails, x, x)\n"
    )
    tests = lab(HEAD + body)
    with pytest.raises(Exception, match="no data"):
        measured(tests, "f", x="f32[3]")


def test_a_trace_that_is_not_kept_is_not_measured() -> None:
    with pytest.raises(UserError):
        lab(HEAD).ask(Measure(100, 77))
