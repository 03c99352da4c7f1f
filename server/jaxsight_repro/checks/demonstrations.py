"""The demonstrations of checks: what a repro runs as a script, in terms of `main` and `inputs`.

Names in braces are filled in: limits, options of the compiler, paths.
"""

from __future__ import annotations

NAN = """\
results = jax.tree.leaves(main(*inputs()))
for index, result in enumerate(results):
    inexact = jax.numpy.issubdtype(jax.numpy.result_type(result), jax.numpy.inexact)
    if inexact and np.isnan(np.asarray(result)).any():
        raise AssertionError(f"NaN in result[{index}]")
"""

GRADIENT = """\
from jax.test_util import check_grads


def is_inexact(x):
    return jax.numpy.issubdtype(jax.numpy.result_type(x), jax.numpy.inexact)


values, tree = jax.tree.flatten(inputs())
floats = [i for i, x in enumerate(values) if is_inexact(x)]


def differentiable(*some):
    every = list(values)
    for i, x in zip(floats, some):
        every[i] = x
    results = jax.tree.leaves(main(*jax.tree.unflatten(tree, every)))
    return [x for x in results if is_inexact(x)]


try:
    check_grads(differentiable, [values[i] for i in floats], order=1, modes=["rev"])
except AssertionError:
    raise AssertionError("gradient and finite differences differ") from None
"""

_COMPARISON = """\
for index, (first, second) in enumerate(zip(jax.tree.leaves(results), jax.tree.leaves(others))):
    if not jax.numpy.issubdtype(first.dtype, jax.numpy.inexact):
        if jax.numpy.issubdtype(first.dtype, jax.dtypes.prng_key):
            first, second = jax.random.key_data(first), jax.random.key_data(second)
        if not np.array_equal(first, second):
            raise AssertionError(f"{title}: result[{index}]")
        continue
    tolerance = max(float(jax.numpy.finfo(first.dtype).eps) ** 0.5, least)
    first, second = (np.asarray(each).astype(complex) for each in (first, second))
    nan, other_nan = np.isnan(first).sum(), np.isnan(second).sum()
    if nan != other_nan:
        side = one if nan > other_nan else other
        raise AssertionError(f"{title}: result[{index}] is NaN only {side}")
    with np.errstate(all="ignore"):
        sizes, other_sizes = np.nan_to_num(abs(first)), np.nan_to_num(abs(second))
        errors = np.nan_to_num(abs(first - second))
        error = float(errors.max(initial=0)) / (float(other_sizes.max(initial=0)) or 1e-300)
    if error > tolerance:
        worst = np.unravel_index(errors.argmax(), errors.shape)
        order = "larger" if sizes[worst] > other_sizes[worst] else "smaller"
        raise AssertionError(
            f"{title}: result[{index}] is {order} {one}, relative difference {error:.1e}"
        )
"""
"""Compares `results` with `others`; differences that rounding may cause are allowed."""

EAGERLY = (
    """\
title, one, other, least = "jit and eager differ", "under jit", "eagerly", {least}
results = jax.jit(main)(*inputs())
with jax.disable_jit():
    others = main(*inputs())
"""
    + _COMPARISON
)

BY_FLAGS = (
    """\
title, one, other, least = "results depend on flags", "without flags", "with flags", {least}
results = jax.jit(main)(*inputs())
others = jax.jit(main, compiler_options={options})(*inputs())
"""
    + _COMPARISON
)

ELSEWHERE = (
    """\
import os
import subprocess
import sys
import tempfile

title, one, other, least = "results depend on the environment", "here", "elsewhere", {least}
results = [np.asarray(result) for result in jax.tree.leaves(jax.jit(main)(*inputs()))]
if "REPRO_RESULTS" in os.environ:
    np.savez(os.environ["REPRO_RESULTS"], *results)
    sys.exit()
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "results.npz")
    variables = {**os.environ, "REPRO_RESULTS": path}
    subprocess.run([{python}, __file__], env=variables, check=True)
    others = list(np.load(path).values())
"""
    + _COMPARISON
)
"""Runs the file itself again with another interpreter."""

COMPILE_TIME = """\
import time

lowered = jax.jit(main).lower(*inputs())
start = time.perf_counter()
lowered.compile()
took = time.perf_counter() - start
if took > {limit}:
    raise AssertionError(f"compiled in {took:.1f} s")
"""

COMPILE_MEMORY = """\
import resource

lowered = jax.jit(main).lower(*inputs())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lowered.compile()
used = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
if used > {limit}:
    raise AssertionError(f"compiling took {used} bytes")
"""

TEMPORARIES = """\
compiled = jax.jit(main).lower(*inputs()).compile()
used = compiled.memory_analysis().temp_size_in_bytes
if used > {limit}:
    raise AssertionError(f"temporaries of {used} bytes per device")
"""

KERNELS = """\
text = jax.jit(main).lower(*inputs()).compile().as_text()
entry = text[text.index("\\nENTRY ") :].split("\\n}")[0].splitlines()[1:]
free = (" parameter(", " constant(", " tuple(", " get-tuple-element(", " bitcast(")
kernels = sum(" = " in line and not any(name in line for name in free) for line in entry)
if kernels > {limit}:
    raise AssertionError(f"compiled to {kernels} kernels")
"""

HLO = """\
import re

text = jax.jit(main).lower(*inputs()).compile().as_text()
if re.search({pattern}, text):
    raise AssertionError("the HLO matches")
"""

KERNELS_FOR = """\
import jaxsight

kernels = jaxsight.kernels(main, target={target})(*inputs()).kernel_count
if kernels > {limit}:
    raise AssertionError(f"compiled to {kernels} kernels")
"""
"""Compiles for a device that need not be there, which JAX alone does not: it needs jaxsight."""

HLO_FOR = """\
import re

import jaxsight

if re.search({pattern}, jaxsight.kernels(main, target={target})(*inputs()).hlo):
    raise AssertionError("the HLO matches")
"""

RETRACES = """\
traced = {}


def count(event, seconds, fun_name="", **rest):
    if "jaxpr_trace_duration" in event:
        traced[fun_name] = traced.get(fun_name, 0) + 1


jax.monitoring.register_event_duration_secs_listener(count)
main(*inputs())
for name, times in traced.items():
    if times > {limit}:
        raise AssertionError(f"traced {times} times: {name}")
"""
