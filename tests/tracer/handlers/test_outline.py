"""The outline says of which pass of a derivative an equation is, in calls inside of it too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp

from jaxsight.tracer.calls.stateful_call import Outcome
from jaxsight.tracer.handlers.outline import outline
from jaxsight.tracer.job import JaxTrace, Job, Traces
from jaxsight.wire.messages.requests import Outline
from jaxsight.wire.program import Body, Step


def steps(function: Callable[[jax.Array], object]) -> list[Step]:
    traced = jax.jit(function).trace(jnp.ones(3))
    traces = Traces()
    traces.put(1, JaxTrace.of(traced, Outcome(), {}))
    return list(inner(outline(Job(Outline(2, 1), traces)).program.body))


def inner(body: Body) -> Iterator[Step]:
    for step in body.steps:
        yield step
        for part in step.bodies:
            yield from inner(part)


def test_a_function_that_is_not_differentiated_has_no_passes() -> None:
    assert not any(step.forward or step.backward for step in steps(jnp.linalg.norm))


def test_the_passes_of_a_gradient() -> None:
    found = steps(lambda x: 2 * jax.grad(lambda x: jnp.sum(jnp.sin(jnp.linalg.norm(x) * x)))(x))
    assert {step.forward for step in found if step.primitive in ("sin", "cos", "sqrt")} == {True}
    assert any(step.backward for step in found if step.primitive == "mul")
    assert not any(step.forward and step.backward for step in found)
    last = found[-1]
    assert last.primitive == "mul"
    assert not last.forward
    assert not last.backward


def test_calls_in_a_pass_are_of_it() -> None:
    found = steps(jax.grad(lambda x: jax.jit(lambda x: jnp.sum(jnp.sin(x) ** 3))(x)))
    for step in found:
        within = [each for part in step.bodies for each in inner(part)]
        assert all(
            (each.forward, each.backward) == (step.forward, step.backward) for each in within
        )
    assert any(step.backward for step in found if step.path.count("/") == 2)
