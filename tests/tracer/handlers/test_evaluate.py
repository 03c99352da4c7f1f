"""A function is run on random inputs that are the same in every environment."""

from __future__ import annotations

import base64
import struct

from jaxsight.wire.messages.replies import Evaluated, Sampled
from jaxsight.wire.messages.requests import NEW, Evaluate
from tests.tracer.handlers.lab import lab

HEAD = "import jax, jax.numpy as jnp\n"


def evaluated(source: str, *, gradients: bool = False, **inputs: str) -> Evaluated:
    file = lab(HEAD + source)
    reply = file.ask(Evaluate(NEW, file.trace("f", **inputs).id, gradients))
    assert isinstance(reply, Evaluated)
    return reply


def numbers(sample: str) -> tuple[float, ...]:
    data = base64.b64decode(sample)
    return struct.unpack(f"<{len(data) // 8}d", data)


def named(results: tuple[Sampled, ...], name: str) -> list[Sampled]:
    return [each for each in results if each.name == name]


def test_results_and_gradients_of_several_inputs() -> None:
    source = "def f(x):\n    return 3 * x, x.sum()\n"
    results = evaluated(source, x="f32[4]").results
    assert {each.name for each in results} == {"result 0", "result 1"}
    first, second = named(results, "result 0")
    assert len(numbers(first.usual)) == 4
    assert numbers(first.usual) != numbers(second.usual)
    gradients = evaluated(source, gradients=True, x="f32[4]").results
    assert {each.name for each in gradients} == {"the gradient of x"}
    for gradient in gradients:
        assert numbers(gradient.usual) == numbers(gradient.second) == (4.0,) * 4


def test_the_inputs_are_the_same_each_time() -> None:
    source = "def f(x, key):\n    return jnp.sin(x), jax.random.bits(key)\n"
    once = evaluated(source, x="f32[3]", key="key<fry>[]")
    assert once.results == evaluated(source, x="f32[3]", key="key<fry>[]").results


def test_of_long_results_some_numbers_are_sent() -> None:
    (first, *_) = evaluated("def f(x):\n    return x > 0\n", x="f32[5000]").results
    assert len(numbers(first.usual)) == 256
    assert (first.relative, first.absolute, first.moved) == (0.0, 0.0, 0.0)


def test_complex_numbers_are_pairs() -> None:
    (first, *_) = evaluated("def f(x):\n    return 1j * x\n", x="f32[2]").results
    assert len(numbers(first.usual)) == 4


def test_programs_with_effects_are_not_run() -> None:
    reply = evaluated("def f(x):\n    jax.debug.print('{}', x)\n    return x\n", x="f32[2]")
    assert (reply.results, reply.problem) == ((), "it has effects, so it is not run")


def test_a_result_says_how_far_the_last_bits_of_inputs_move_it() -> None:
    results = evaluated("def f(x):\n    return jnp.sum(x) * 1e8\n", x="f32[64]").results
    assert all(each.moved > 0 for each in named(results, "result 0"))
