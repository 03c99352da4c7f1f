"""The tracker does not change what a program does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_PROGRAM = """
import functools
import inspect

import jax
import jax.monitoring
import jax.numpy as jnp
from jax import lax

traces = 0
compiled = 0


def count(event, seconds, **_):
    global compiled
    compiled += "backend_compile" in event


jax.monitoring.register_event_duration_secs_listener(count)


def f(x):
    global traces
    traces += 1
    return jnp.sin(x) * 2


class Model:
    def call(self, x):
        return f(x) + 1


@jax.custom_jvp
def ruled(x):
    return f(x)


@ruled.defjvp
def rule(primals, tangents):
    return ruled(primals[0]), f(primals[0]) * tangents[0]


@jax.custom_batching.custom_vmap
def batched(x):
    return f(x)


@batched.def_vmap
def batched_rule(size, is_batched, x):
    return f(x) * 2, is_batched[0]


def step(carry, x):
    return f(carry) + x, carry


@functools.partial(jax.jit, static_argnums=1)
def scaled(x, rate):
    return f(x) * rate


@jax.jit
def inner(x):
    return f(x)


@jax.jit
def outer(x, y):
    return inner(x) + inner(y)


x = jnp.ones((4, 4))
model, part = Model(), functools.partial(f)
for _ in range(2):
    jax.jit(f)(x), jax.jit(f)(jnp.ones(3)), jax.jit(f, donate_argnums=())(x)
    jax.jit(model.call)(x), jax.jit(part)(x), jax.jit(functools.partial(f))(x)
    jax.jit(jax.vmap(jax.grad(lambda v: f(v).sum())))(x)
    lax.scan(step, 0.0, jnp.ones(3)), jax.grad(lambda v: ruled(v).sum())(x)
    scaled(x, 1), scaled(x, 2), outer(x, x), jax.vmap(f)(x), jax.checkpoint(f)(x)
    jax.vmap(batched)(x), jax.jit(jax.vmap(batched))(x), batched(x)
with jax.checking_leaks():
    jax.jit(lambda v: jax.vmap(jax.grad(lambda w: jnp.sum(lax.scan(step, w, w)[0])))(v))(x)
jitted = jax.jit(f)
print(traces, compiled, type(jitted), inspect.signature(jitted), jitted.__wrapped__ is f)
print(jitted.__name__, jax.vmap(f).__wrapped__ is f, inspect.signature(jax.grad(f)))
print(jitted.lower(x).as_text(), jitted.trace(x).jaxpr)
print(jax.make_jaxpr(jax.vmap(batched))(x), jax.make_jaxpr(batched)(x), jax.vmap(batched)(x))
print(jax.make_jaxpr(jax.value_and_grad(lambda v: ruled(lax.scan(step, v, x)[0]).sum()))(x[0]))
"""

_TRACKED = """
from jaxsight_repro.capturing.call_tree.tracker import Tracker
{before}
tracker = Tracker()
tracker.install()
trees = []
tracker.on_call = lambda starts: None if starts else trees.append(tracker.current())
"""


def _printed(tmp_path: Path, prelude: str, program: str) -> str:
    file = tmp_path / "program.py"
    file.write_text(prelude + program, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=300, check=False
    )
    assert not ran.returncode, ran.stderr[-3000:]
    return ran.stdout


@pytest.mark.parametrize("before", ["", "import jax"])
def test_traces_compilations_and_objects_are_the_same(tmp_path: Path, before: str) -> None:
    without = _printed(tmp_path, "", _PROGRAM)
    assert int(without.split()[0]) > 10, "the program hardly traces"
    assert _printed(tmp_path, _TRACKED.format(before=before), _PROGRAM) == without


def test_trees_hold_no_tracers_and_few_arrays(tmp_path: Path) -> None:
    program = """
import gc
import jax, jax.numpy as jnp, numpy as np

large = np.ones((100, 100), np.float32)

@jax.jit
def f(x):
    return jnp.tanh(x @ large)

f(jnp.ones((3, 100)))
gc.collect()
print(sum(isinstance(part, jax.core.Tracer) for part in gc.get_objects()))
print(sorted(array.shape for array in trees[-1].arrays.values()))
"""
    printed = _printed(tmp_path, _TRACKED.format(before=""), program).splitlines()
    assert printed == ["0", "[(3, 100), (100, 100)]"]


def test_an_error_that_no_call_raised_has_no_tree(tmp_path: Path) -> None:
    program = """
import jax

jax.jit(lambda x: x + 1)(1.0)
try:
    {}["missing"]
except KeyError as error:
    print(tracker.failed(error))
print(trees[-1].root.api, tracker.current())
"""
    printed = _printed(tmp_path, _TRACKED.format(before=""), program)
    assert printed == "None\njax.jit None\n"


def test_a_later_error_at_the_same_address_has_no_tree(tmp_path: Path) -> None:
    program = """
import gc
import jax, jax.numpy as jnp

def fail():
    try:
        jax.jit(lambda x: x + jnp.ones(3))(jnp.ones(2))
    except TypeError as error:
        print(tracker.failed(error).root.api)
        return id(error)

address = fail()
gc.collect()
others = []
while id(later := TypeError("later")) != address and len(others) < 100_000:
    others.append(later)
print(id(later) == address, tracker.failed(later))
"""
    printed = _printed(tmp_path, _TRACKED.format(before=""), program)
    assert printed == "jax.jit\nTrue None\n"
