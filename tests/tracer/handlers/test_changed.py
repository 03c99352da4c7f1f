"""Changed programs: what they compute, and which operation they are about."""

from __future__ import annotations

import base64

import jax
import numpy as np
import pytest
from jax.extend.core import jaxpr_as_fun  # type: ignore[attr-defined,unused-ignore]

from jaxsight.tracer.failures import UserError
from jaxsight.tracer.programs.changed import NoSuchChange, changed
from jaxsight.wire.messages.requests import BARRIER, BEFORE, ROLLED, WITHOUT, LowerChanged
from tests.tracer.handlers.lab import lab

HEAD = "import jax, jax.numpy as jnp, numpy as np\n"

SCATTERS = (
    HEAD
    + """\
def f(x, i):
    for n in range(8):
        x = x.at[i + n % 8].add(x[0] * (1.0 + n * 1e-4))
    return jnp.sum(x)
"""
)

HISTORY = (
    HEAD
    + """\
def f(x, w):
    all, weights = [], np.linspace(0.1, 0.5, 6)
    for n in range(6):
        x = jax.nn.relu(jnp.tanh(x @ w) * weights[n] + jnp.sin(x))
        last = jnp.cos(x) + 1
        all.append(x)
    return jnp.stack(all), last, x.sum()
"""
)


def stage(source: str, **arguments: str) -> jax.stages.Traced:
    file = lab(source)
    return file.traces.of(file.trace("f", **arguments).id).stage


def outputs(traced: jax.stages.Traced, *values: object) -> list[np.ndarray]:
    return [np.asarray(value) for value in jaxpr_as_fun(traced.jaxpr)(*values)]


@pytest.mark.parametrize(
    ("source", "arguments", "values", "copies"),
    [
        (SCATTERS, {"x": "f32[64,4]", "i": "i32[]"}, ((64, 4), 3), 8),
        (HISTORY, {"x": "f32[5,5]", "w": "f32[5,5]"}, ((5, 5), (5, 5)), 6),
    ],
    ids=["scatters", "history"],
)
def test_a_loop_that_is_rolled_up_computes_the_same(
    source: str, arguments: dict[str, str], values: tuple[object, ...], copies: int
) -> None:
    random = np.random.default_rng(0)
    given = [
        random.normal(size=value).astype("f4") if isinstance(value, tuple) else np.int32(3)
        for value in values
    ]
    whole = stage(source, **arguments)
    rolled = changed(whole, ROLLED, 0)
    assert rolled.copies in (copies - 1, copies)
    assert "scan[" in str(rolled.stage.jaxpr)
    for one, other in zip(outputs(whole, *given), outputs(rolled.stage, *given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_barrier_leaves_the_results_as_they_are() -> None:
    whole = stage(HISTORY, x="f32[5,5]", w="f32[5,5]")
    given = np.ones((5, 5), "f4"), np.eye(5, dtype="f4")
    count = changed(whole, BEFORE, 0).operations
    for at in range(count):
        with_barrier = changed(whole, BARRIER, at).stage
        assert str(with_barrier.jaxpr).count("optimization_barrier") == 1
        for one, other in zip(outputs(whole, *given), outputs(with_barrier, *given), strict=True):
            np.testing.assert_array_equal(one, other)


def test_each_operation_can_be_left_out_or_come_after_the_end() -> None:
    whole = stage(HISTORY, x="f32[5,5]", w="f32[5,5]")
    given = np.ones((5, 5), "f4"), np.eye(5, dtype="f4")
    count = changed(whole, BEFORE, 0).operations
    for at in range(count):
        outputs(changed(whole, BEFORE, at).stage, *given)
        left = changed(whole, WITHOUT, at)
        made = left.stage.in_avals[0][2:] if left.stage.in_avals else ()
        outputs(left.stage, *given, *(np.ones(aval.shape, aval.dtype) for aval in made))
    assert len(outputs(changed(whole, BEFORE, count).stage, *given)) == 3


def test_the_path_is_that_of_the_equation() -> None:
    whole = stage(HEAD + "def f(x):\n    return jax.nn.relu(jnp.sin(x)) + 1\n", x="f32[4]")
    paths = [changed(whole, WITHOUT, at).path for at in range(3)]
    assert paths[0] == "0"
    assert paths[-1] == "2"
    assert paths[1].startswith("1/body/")


@pytest.mark.parametrize(
    ("body", "change", "at"),
    [
        ("jnp.sin(x)", ROLLED, 0),
        ("jnp.sin(x)", WITHOUT, 1),
        ("(jax.debug.print('{}', x), x)[1]", WITHOUT, 0),
    ],
    ids=["no loop", "no operation", "effects"],
)
def test_what_cannot_be_changed_so_is_refused(body: str, change: str, at: int) -> None:
    with pytest.raises(NoSuchChange):
        changed(stage(HEAD + f"def f(x):\n    return {body}\n", x="f32[4]"), change, at)


def test_a_changed_program_is_lowered() -> None:
    file = lab(SCATTERS)
    traced = file.trace("f", x="f32[64,4]", i="i32[]")
    reply = file.ask(LowerChanged(1, traced.id, "cpu", "", BARRIER, 72))
    assert base64.b64decode(reply.program)
    assert reply.operations == 73
    with pytest.raises(UserError, match="no change: operation 900"):
        file.ask(LowerChanged(1, traced.id, "cpu", "", BARRIER, 900))
