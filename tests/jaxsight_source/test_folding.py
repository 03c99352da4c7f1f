"""Equal runs of equations become helper functions and loops, with the user's names, and the program
stays the same.
"""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import pytest

from jaxsight_source import api
from jaxsight_source.options import SourceOptions
from jaxsight_source.written import load
from tests.jaxsight_source.harnesses import check


def f32(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def norm(x, p):
    mean = x.mean(-1, keepdims=True)
    var = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"]


def mlp(x, p):
    return jnp.tanh(x @ p["up"] + p["b"]) @ p["down"]


def block(x, p):
    return x + mlp(norm(x, p["norm"]), p["mlp"])


def network(params, x):
    for p in params["layers"]:
        x = block(x, p)
    return norm(x, params["norm"])


def loss(params, x):
    return (network(params, x) ** 2).sum()


def parameters(layers):
    normed = {"scale": f32(8), "bias": f32(8)}
    inner = {"up": f32(8, 16), "b": f32(16), "down": f32(16, 8)}
    return {"norm": normed, "layers": [{"norm": normed, "mlp": inner}] * layers}


def written(function, *args, **options):
    """The text that a function is written as, which is the same program to the equation."""
    made = api.write(function, args, {}, SourceOptions("pretty", **{"run": False, **options}))
    assert check(made, function, args, {}) is None
    return made.text


def code_lines(text):
    return [line for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def forward():
    return written(network, parameters(6), f32(4, 8))


@pytest.fixture(scope="module")
def gradient():
    return written(jax.grad(loss), parameters(6), f32(4, 8))


def test_layers_are_a_loop_over_their_parameters(forward):
    assert '    for layer in params["layers"]:\n        x = block(x, layer)\n' in forward


def test_functions_of_the_user_keep_their_names_and_are_written_once(forward):
    assert re.findall(r"^def (\w+)", forward, re.MULTILINE) == ["norm", "block", "network"]


def test_parts_of_an_argument_are_passed_whole(forward):
    assert "def norm(x, p):" in forward
    assert 'norm(x, p["norm"])' in forward
    assert 'norm(x, params["norm"])' in forward


def test_the_text_grows_with_the_program_not_with_the_layers(forward):
    deeper = written(network, parameters(12), f32(4, 8))
    assert deeper == forward


def test_the_backward_pass_of_a_layer_is_written_in_the_forward_pass(gradient):
    assert re.search(
        r"^def block\(.*\n(?:    .*\n|\n)*?    def block_backward\(ct\):", gradient, re.MULTILINE
    )
    assert "block_backwards.append(block_backward)" in gradient
    assert "in reversed(block_backwards):" in gradient


def test_gradients_of_layers_are_a_comprehension(gradient):
    assert "for g in reversed(gradients)" in gradient


def test_a_gradient_is_a_fraction_of_its_unfolded_text(gradient):
    unfolded = written(jax.grad(loss), parameters(6), f32(4, 8), fold=False)
    assert len(code_lines(gradient)) < len(code_lines(unfolded)) / 2


def test_the_written_gradient_runs_and_gives_the_same_numbers():
    def stacked(params, x):
        for p in params:
            x = mlp(x, p)
        return x.sum()

    inner = {"up": jnp.full((4, 4), 0.3), "b": jnp.ones(4), "down": jnp.full((4, 4), 0.2)}
    params, x = [inner] * 4, jnp.arange(8.0).reshape(2, 4)
    made = api.write(jax.grad(stacked), (params, x), {}, SourceOptions(style="pretty", run=False))
    assert "mlp_backward" in made.text
    ours, theirs = load(made)(params, x), jax.grad(stacked)(params, x)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    assert all(
        (one == other).all()
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True)
    )


def test_comprehensions_are_part_of_the_function_around_them():
    def heads(x, ws):
        return jnp.stack([jnp.tanh(jnp.sin(x @ w) * 2.0 + 1.0) ** 2 for w in ws])

    def stack(layers, x):
        for ws in layers:
            x = x + sum(h * 0.5 for h in heads(x, ws))
        return x

    text = written(stack, [[f32(8, 8)] * 3] * 4, f32(8, 8))
    assert re.findall(r"^ *def (\w+)", text, re.MULTILINE) == ["heads", "stack"]


def test_named_layers_are_counted():
    def stack(params, x):
        for index in range(6):
            p = params[f"layer_{index}"]
            x = jnp.tanh(x @ p["w"]) * 0.5 + p["b"]
        return x

    layer = {"w": f32(8, 8), "b": f32(8)}
    text = written(stack, {f"layer_{index}": layer for index in range(6)}, f32(4, 8))
    assert "for i in range(6):" in text
    assert 'params[f"layer_{i}"]["w"]' in text


def test_numbers_that_differ_are_gone_over():
    def chain(x):
        for number in range(20):
            x = jnp.sin(x * 0.5 + (number * number + 0.5))
        return x

    text = written(chain, f32(3))
    assert "jnp.sin" in text
    assert text.count("jnp.sin") == 1


def test_lists_of_different_arguments_are_gone_over_together():
    def pairs(weights, biases, x):
        for w, b in zip(weights, biases, strict=True):
            x = jnp.tanh(x @ w + b) * 2.0
        return x

    text = written(pairs, [f32(8, 8)] * 8, [f32(8)] * 8, f32(8))
    assert "in zip(weights, biases):" in text


def test_values_of_all_iterations_are_collected():
    def states(ws, x):
        kept = []
        for w in ws:
            x = jnp.tanh(x @ w) * 2.0 + 1.0
            kept.append(x)
        return kept

    text = written(states, [f32(8, 8)] * 8, f32(8))
    assert "for w" in text or "in ws:" in text
    assert "[g for g in saved]" in text or "return saved" in text or "g for g in" in text


def test_a_layer_that_differs_stays_outside_of_the_loop():
    def odd(ws, x):
        for index, w in enumerate(ws):
            x = jnp.tanh(x @ w) * 2.0 + 1.0
            if index == 7:
                x = jnp.exp(x)
        return x

    text = written(odd, [f32(8, 8)] * 8, f32(8))
    assert text.count("@") <= 2
    assert text.count("jnp.exp") == 1


def test_iterations_that_read_older_ones_are_not_folded():
    def fibonacci(x):
        a = b = x
        older = [a, b]
        for _ in range(10):
            older.append(jnp.sin(older[-1]) + older[-2] * older[0])
        return older[-1]

    written(fibonacci, f32(3))


def test_what_the_first_iteration_reads_may_be_read_after_the_loop():
    def tied(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w) * 2.0 + 1.0
        return x @ ws[0]

    text = written(tied, [f32(8, 8)] * 8, f32(8))
    assert "in ws:" in text
    assert "ws[0]" in text


def test_short_repeats_stay_as_they_are():
    def short(ws, x):
        for w in ws:
            x = jnp.tanh(x @ w)
        return x

    assert "    for " not in written(short, [f32(8, 8)] * 3, f32(8))


def test_the_plain_style_is_not_folded():
    made = api.write(network, (parameters(3), f32(4, 8)), {}, SourceOptions(run=False))
    assert "    for " not in made.text


def test_what_nothing_reads_of_a_state_has_no_name():
    def far(x):
        def more(state):
            return state[0] < 3

        def step(state):
            number, *rest = state
            return (number + 1, *(value * 2.0 for value in rest))

        return jax.lax.while_loop(more, step, (0, x, x, x))

    assert ", *_ = " in written(far, f32(3))


def test_a_backward_pass_without_a_sum_is_called_with_none(gradient):
    assert re.search(r'norm\(\w+, params\["norm"\]\)', gradient)
    assert re.search(r"norm_backward\(.+, None\)", gradient)
    assert re.search(r"added\w* = \w+ if ct\w* is None else", gradient)
    assert "add_jaxvals" not in gradient


def test_iterations_of_a_loop_and_their_backward_pass_are_two_loops():
    def unrolled(params, tokens):
        x = params["embedding"][tokens]
        for p in params["layers"]:
            h = jnp.tanh(norm(x, p["norm"]) @ p["mlp"]["up"] + p["mlp"]["b"])
            gate = jax.nn.sigmoid(h) * 2.0
            x = x + (h * gate) @ p["mlp"]["down"]
        return (x**2).mean()

    layers = parameters(5)["layers"]
    tokens = jax.ShapeDtypeStruct((4,), jnp.int32)
    text = written(jax.grad(unrolled), {"embedding": f32(9, 8), "layers": layers}, tokens)
    assert 'for layer in params["layers"]:' in text
    assert 'in zip(reversed(saved), reversed(params["layers"])):' in text
    assert text.count("jnp.tanh(") == 1
