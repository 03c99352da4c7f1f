"""Programs that return wrong values: NaN, results that differ, wrong derivatives."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from jaxsight.repro.checks.base import Assertion, Check, InvalidCheck
from jaxsight.repro.failures import Failure

_NAN = """\
results = jax.tree.leaves(main(*inputs()))
for index, result in enumerate(results):
    inexact = jax.numpy.issubdtype(jax.numpy.result_type(result), jax.numpy.inexact)
    if inexact and np.isnan(np.asarray(result)).any():
        raise AssertionError(f"NaN in result[{index}]")
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

_EAGER = """\
title, one, other, least = "jit and eager differ", "under jit", "eagerly", {least}
results = jax.jit(main)(*inputs())
with jax.disable_jit():
    others = main(*inputs())
"""

_FLAGS = """\
title, one, other, least = "results depend on flags", "without flags", "with flags", {least}
results = jax.jit(main)(*inputs())
others = jax.jit(main, compiler_options={options!r})(*inputs())
"""

_ELSEWHERE = """\
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
    subprocess.run([{python!r}, __file__], env=variables, check=True)
    others = list(np.load(path).values())
"""
"""Runs the file itself again with another interpreter."""

_GRADIENT = """\
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

_ORDER = re.compile(r"is (?:larger|smaller) .*")
_AMOUNT = re.compile(r"relative difference ([-+.\de]+)")


@dataclass(frozen=True, slots=True)
class Differs(Assertion):
    """The results of two ways to run a program differ by more than rounding."""

    source: str = ""

    def same(self, failure: Failure, expected: Failure) -> bool:
        """Return whether results differ, and whether NaN is on the same side.

        Which results are larger depends on what is computed from them.
        """
        if not self.holds(failure):
            return False
        return _without_order(failure).same(_without_order(expected))

    def calibrated(self, expected: Failure) -> Check:
        """Require a tenth of the original's difference, so that rounding errors do not count."""
        amount = _AMOUNT.search(expected.message)
        least = min(float(amount[1]), 0.1) / 10 if amount else 0.0
        return replace(self, demonstration=_compared(self.source, f"{least:.1e}"))


def _without_order(failure: Failure) -> Failure:
    return replace(failure, message=_ORDER.sub("differs", failure.message))


def _compared(source: str, least: str) -> tuple[str, ...]:
    return tuple((source.replace("{least}", least) + _COMPARISON).splitlines())


def nan(text: str) -> Check:
    """Return the check `nan`."""
    return Assertion(text, tuple(_NAN.splitlines()), finite=True, prefix="NaN in ")


def gradient(text: str) -> Check:
    """Return the check `gradient`."""
    lines = tuple(_GRADIENT.splitlines())
    return Assertion(text, lines, prefix="gradient and finite differences differ")


def differs_eagerly(text: str) -> Check:
    """Return the check `differs:jit,eager`."""
    lines = _compared(_EAGER, "0")
    return Differs(text, lines, eager=True, prefix="jit and eager differ", source=_EAGER)


def differs_by_flags(text: str, flags: str) -> Check:
    """Return the check `differs:FLAGS`."""
    options = _options(flags)
    source = _FLAGS.replace("{options!r}", repr(options))
    return Differs(text, _compared(source, "0"), prefix="results depend on flags", source=source)


def differs_elsewhere(text: str, python: str) -> Check:
    """Return the check `differs:PYTHON`."""
    source = _ELSEWHERE.replace("{python!r}", repr(python))
    prefix = "results depend on the environment"
    lines = _compared(source, "0")
    return Differs(text, lines, as_file=True, prefix=prefix, source=source)


def _options(flags: str) -> dict[str, str | bool]:
    """Read XLA flags as compiler options."""
    options: dict[str, str | bool] = {}
    for flag in flags.split():
        name, equals, value = flag.partition("=")
        if not re.fullmatch(r"--xla_\w+", name):
            raise InvalidCheck(f"invalid XLA flag {flag!r}; expected --xla_NAME=VALUE")
        truth = {"true": True, "false": False}
        options[name[2:]] = truth.get(value.lower(), value) if equals else True
    return options
