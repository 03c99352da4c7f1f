"""Values that belong together have one name, and texts stay short."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from jaxsight_source import api
from jaxsight_source.options import SourceOptions
from tests.jaxsight_source import drawn, transformers
from tests.jaxsight_source.harnesses import check
from tests.jaxsight_source.many import body_lines
from tests.jaxsight_source.readability import code_lines

X = jax.ShapeDtypeStruct((8,), jnp.float32)


def written(function, *args):
    """The readable text of a function, which is the same program to the equation."""
    made = api.write(function, args, {}, SourceOptions(style="pretty", run=False))
    assert check(made, function, args, {}) is None
    assert max(map(len, made.text.splitlines())) <= 100
    return made.text


def test_what_a_function_keeps_for_its_backward_pass_has_one_name():
    text = written(jax.grad(lambda x: jnp.var(x) ** 2), X)
    assert "var_out, *rest = var(x, 0)" in text
    assert "(*rest, " in text


def test_parameters_that_are_only_passed_on_are_one():
    @jax.jit
    def inner(a, b, c):
        return a * b - c

    @jax.jit
    def outer(x, a, b, c):
        return jnp.sin(x) + inner(a, b, c)

    text = written(lambda x: outer(x, x + 1.0, x + 2.0, x + 3.0), X)
    assert "def outer(x, *rest):" in text
    assert "inner(*rest)" in text


def test_results_that_nothing_reads_have_no_names():
    @jax.jit
    def several(x):
        return tuple(x * number for number in (2.0, 3.0, 5.0, 7.0, 11.0))

    assert "_, several_out, *_ = several(x)" in written(lambda x: several(x)[1], X)


def test_user_names_are_not_put_together():
    @jax.jit
    def pair(x):
        return x * 2.0, x * 3.0, x * 5.0

    @jax.jit
    def total(scale, shift, rest):
        return scale + shift * rest

    def called(x):
        scale, shift, other = pair(x)
        return total(scale, shift, other)

    assert "scale, shift, other = pair(x)" in written(called, X)


def test_parts_of_arguments_are_read_where_they_are_used():
    text = written(transformers.logits, *transformers.arguments(12)[:2])
    assert '    return h @ p["proj"]["w"] + p["proj"]["b"]\n' in text
    assert '    x_1 = x + attention(norm(x, p["ln1"]), p["attn"])\n' in text
    assert '    return x_1 + mlp(norm(x_1, p["ln2"]), p["mlp"])\n' in text


def test_the_gradient_of_a_transformer_of_12_layers_is_200_lines():
    text = written(jax.grad(transformers.loss), *transformers.arguments(12))
    assert code_lines(text) <= 200


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("family", "name", "derived"),
    [
        ("lineax solvers", "lineax.LSMR", False),
        ("lineax solvers", "lineax.GMRES", True),
        ("optimistix solvers", "optimistix.GradientDescent", False),
        ("optimistix solvers", "optimistix.GaussNewton", False),
    ],
)
def test_solvers_take_at_most_three_lines_per_equation(family, name, derived):
    program = drawn.Subject(family, name, derived).program()
    made = api.write(program.function, program.args, {}, SourceOptions("pretty", run=False))
    assert body_lines(made.text) <= 3 * program.equations
