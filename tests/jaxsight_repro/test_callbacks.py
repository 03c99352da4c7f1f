"""Callbacks are replaced by functions that do what they did when the program failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.jaxsight_repro.programs import SERVER, body, extract

PRELUDE = """\
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

x = jnp.ones(3)
"""

RAISES = """
class Rejected(ValueError):
    def __init__(self, row, limit):
        super().__init__(row)
        self.limit = limit

    def __str__(self):
        return f"over {self.limit}"


def check(row):
    raise Rejected(row, 4)


@jax.jit
def step(x):
    return jax.pure_callback(check, x, x) * 2


step(x)
"""


def test_a_callback_that_raises(tmp_path: Path) -> None:
    done = extract(tmp_path, PRELUDE + RAISES)
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.endswith("callback: Rejected: over 4\n")
    assert (
        body(done.repro).partition("def main")[0].strip()
        == '''\
import jax
import jax.numpy as jnp


class Rejected(ValueError):
    """Stand in for the exception class of this name in the program."""


def host_check(*args, **kwargs):
    """Raise what the callback `check` raised in the program."""
    raise Rejected("over 4")


def step(x):
    pure_callback = jax.pure_callback(
        host_check, jax.ShapeDtypeStruct((3,), jnp.float32), x
    )
    return pure_callback * 2.0'''
    )


SHAPE = """
step = jax.jit(lambda x: jax.pure_callback(lambda x: np.zeros(5, np.float32), x, x) * 2)
step(x)
"""


def test_a_callback_that_returns_a_wrong_shape(tmp_path: Path) -> None:
    done = extract(tmp_path, PRELUDE + SHAPE)
    assert done.code == 0, done.stdout + done.stderr
    assert "Expected: (3,), Actual: (5,)" in done.stdout
    assert "return np.array([0.0, 0.0, 0.0, 0.0, 0.0], dtype=np.float32)\n" in done.repro


CALLS = """
calls = []


def noisy(x):
    calls.append(x)
    if len(calls) == 3:
        return np.full(3, np.nan, np.float32)
    return np.asarray(x) * 2 + jnp.sum(jnp.ones(3)).item()


@jax.jit
def run(x):
    return jax.lax.fori_loop(0, 3, lambda i, x: io_callback(noisy, x, x, ordered=True), x)


run(x)
"""


def test_the_results_of_each_call_are_returned_in_order(tmp_path: Path) -> None:
    done = extract(tmp_path, PRELUDE + CALLS, "--check", "nan")
    assert done.code == 0, done.stdout + done.stderr
    assert (
        """\
HOST_NOISY = {
    0: np.array([5.0, 5.0, 5.0], dtype=np.float32),
    1: np.array([13.0, 13.0, 13.0], dtype=np.float32),
    2: np.array([np.nan, np.nan, np.nan], dtype=np.float32),
}
"""
        in done.repro
    )


DEBUG = """
def watch(x):
    raise LookupError(f"{x.sum():.0f} rows")


def step(x):
    jax.debug.callback(lambda x: None, x)
    jax.debug.callback(watch, x)
    return x + 1


jax.vmap(jax.jit(step))(jnp.ones((2, 3)))
"""


@pytest.mark.slow
def test_a_debug_callback_that_raises(tmp_path: Path) -> None:
    done = extract(tmp_path, PRELUDE + DEBUG)
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.endswith("LookupError: 3 rows\n")
    assert "jax.debug.callback(host_watch, " in done.repro


EAGER = """
def watch(x):
    raise LookupError(f"{x.sum():.0f} rows")


jax.debug.callback(watch, x)
"""


@pytest.mark.slow
def test_a_debug_callback_outside_of_functions(tmp_path: Path) -> None:
    done = extract(tmp_path, PRELUDE + EAGER)
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout == "repro.py: LookupError: 3 rows\n"


HANG = """
def wait(x):
    time.sleep(600)


jax.jit(lambda x: io_callback(wait, None, x))(x)
"""


@pytest.mark.slow
def test_a_callback_that_hangs(tmp_path: Path) -> None:
    done = extract(tmp_path, PRELUDE + HANG, "--timeout", "15")
    assert done.code == 0, done.stdout + done.stderr
    assert done.stdout.startswith("repro.py: did not finish within ")
    assert "time.sleep(3600)" in done.repro


UNCHANGED = """
traces, calls, compiles = [], [], []
jax.monitoring.register_event_duration_secs_listener(
    lambda name, *_, **__: compiles.append(name) if "backend_compile" in name else None
)


def half(x, *, scale):
    calls.append(np.asarray(x).shape)
    return np.asarray(jnp.asarray(x) * scale)


class Model:
    def apply(self, x):
        calls.append("model")
        return np.asarray(x)


@jax.jit
def step(x):
    traces.append(1)
    y = jax.pure_callback(half, x, x, scale=0.5, vmap_method="sequential")
    return jax.pure_callback(Model().apply, y, y, vmap_method="expand_dims")


def fail(x):
    raise KeyError("row")


for _ in range(2):
    jax.debug.callback(lambda x: calls.append("debug"), x)
    print(step(x), jax.vmap(step)(jnp.ones((2, 3))))
    try:
        jax.block_until_ready(jax.jit(lambda x: io_callback(fail, x, x))(x))
    except Exception as error:
        print(type(error), str(error).splitlines()[-1])
print(len(traces), len(compiles), calls)
"""


@pytest.mark.slow
def test_capture_changes_no_callbacks(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PRELUDE + UNCHANGED)
    boot = SERVER / "jaxsight" / "boot.py"
    captured = [str(boot), "repro", "run", "script", str(tmp_path / "case"), "--", "program.py"]
    outputs = [
        subprocess.run(
            [sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for command in (["program.py"], captured)
    ]
    assert outputs[0] == outputs[1]
    assert "'debug'" in outputs[0]
