"""`jaxsight check --calls`: a user's tests run, and what is traced again is told; and baselines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.terminal import jaxsight

pytestmark = pytest.mark.slow

TESTS = """\
import functools

import jax
import jax.numpy as jnp


@jax.jit
def total(x):
    return x.sum()


@functools.partial(jax.jit, static_argnums=1)
def power(x, n):
    return x**n


def test_sizes():
    for size in (3, 4, 5):
        total(jnp.ones(size))


def test_numbers():
    total(jnp.float32(1))
    total(1.0)


def test_steps():
    for n in range(4):
        power(jnp.ones(3), n)


def test_lambdas():
    double = lambda: jax.jit(lambda v: 2 * v)
    for _ in range(3):
        double()(jnp.ones(3))


def test_bodies():
    for _ in range(3):
        jax.lax.scan(lambda c, r: (c + r, r), 0.0, jnp.ones(3))
        jax.lax.while_loop(lambda c: c < 3, lambda c: c + 1, 0)
        jax.lax.cond(jnp.bool_(True), lambda v: v + 1, lambda v: v, 1.0)
        jax.jvp(lambda v: jnp.sin(v), (1.0,), (1.0,))


def test_what_is_compiled_once():
    for _ in range(3):
        total(jnp.ones(3))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    settings = f"[tool.jaxsight]\npython = {json.dumps(sys.executable)}\n"
    options = '[tool.pytest.ini_options]\nasyncio_default_fixture_loop_scope = "function"\n'
    (tmp_path / "pyproject.toml").write_text(settings + options)
    (tmp_path / "test_model.py").write_text(TESTS)
    return tmp_path


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(TESTS.splitlines(), 1) if text in line)


def test_calls_that_trace_again_are_told_where_they_stand(folder: Path) -> None:
    done = jaxsight("check", "--calls", ".", "--output-format", "json", cwd=folder)
    assert done.returncode == 1, done.stderr
    found = {(each["code"], each["location"]["row"]) for each in json.loads(done.stdout)}
    assert ("JX306", line_of("total(jnp.ones(size))")) in found
    assert ("JX301", line_of("total(1.0)")) in found
    assert ("JX306", line_of("power(jnp.ones(3), n)")) in found
    assert ("JX303", line_of("double()(jnp.ones(3))")) in found
    assert all(row != line_of("total(jnp.ones(3))") for _, row in found)
    bodies = range(line_of("def test_bodies"), line_of("def test_what_is_compiled_once"))
    assert not [each for each in found if each[1] in bodies]


def test_tests_that_cannot_run_are_told(folder: Path) -> None:
    done = jaxsight("check", "--calls", "nowhere", cwd=folder)
    assert done.returncode == 2
    assert "cannot run the tests" in done.stderr


def test_a_baseline_leaves_out_what_was_there(folder: Path) -> None:
    done = jaxsight("check", "--calls", ".", "--write-baseline", "known.json", cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "test_model.py").write_text("# moved\n\n" + TESTS)
    done = jaxsight("check", "--calls", ".", "--baseline", "known.json", cwd=folder)
    assert done.returncode == 0, done.stdout
    assert "No findings" in done.stdout
    more = (
        TESTS
        + "\n\ndef test_more():\n    for n in (1.0, 2, jnp.ones(7), jnp.ones(8)):\n        total(n)\n"
    )
    (folder / "test_model.py").write_text(more)
    done = jaxsight("check", "--calls", ".", "--baseline", "known.json", cwd=folder)
    assert done.returncode == 1
    assert "total(n)" in done.stdout
    (folder / "known.json").write_text("[]")
    done = jaxsight("check", "--baseline", "known.json", cwd=folder)
    assert done.returncode == 2
    assert "invalid baseline file" in done.stderr


def test_what_the_text_shows_is_told_once(folder: Path) -> None:
    head = TESTS.partition("def test_sizes")[0]
    loop = "def totals():\n    for size in range(1, 20):\n        total(jnp.ones(size))\n"
    code = head + loop
    (folder / "loop.py").write_text(code, encoding="utf-8")
    test = "from loop import totals\n\n\ndef test_totals():\n    totals()\n"
    (folder / "test_loop.py").write_text(test, encoding="utf-8")
    done = jaxsight("check", "loop.py", "--calls", "test_loop.py", cwd=folder)
    assert done.stdout.count("[JX306]") == 1
