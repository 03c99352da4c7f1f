"""Functions of a file written as source: whose names they keep, and where their lines come from."""

from __future__ import annotations

import pytest

from jaxsight.tracer.failures import UserError
from jaxsight.wire.messages.replies import Listing
from jaxsight.wire.messages.requests import Sourcerize, TransformedSource
from tests.tracer.handlers.lab import Lab, lab

HEAD = "import jax, jax.numpy as jnp\n"


def sourcerized(file: Lab, wanted: TransformedSource | None = None, /, **arguments: str) -> Listing:
    """The function `f` of a file as source."""
    wanted = wanted or TransformedSource()
    request = file.request("f", {}, arguments)
    return file.ask(Sourcerize(request.id, request, wanted))


def bound(text: str) -> list[tuple[str, str]]:
    """The assignments of a text: the name, and what is called."""
    parts = [line.strip().partition(" = ") for line in text.split("\n") if " = " in line]
    return [(name, value.removeprefix("lax.").partition("(")[0]) for name, _, value in parts]


def test_values_have_the_names_that_the_user_gave_them() -> None:
    file = lab(
        HEAD + "def f(x):\n    y = jnp.sin(x)\n    z = y + jnp.cos(y)\n    z += 1.0\n    return z\n"
    )
    names = bound(sourcerized(file, x="f32[5]").text)
    assert names == [("y", "sin"), ("cos", "cos"), ("z", "add"), ("z_1", "add")]


def test_of_several_functions_that_name_a_value_the_outermost_wins() -> None:
    file = lab(
        HEAD
        + "def g(v):\n    inner = jnp.sin(v)\n    return inner\n"
        + "def f(x):\n    first = g(x)\n    second = g(first)\n    return second * 2\n"
    )
    names = bound(sourcerized(file, x="f32[5]").text)
    assert names == [("first", "sin"), ("second", "sin"), ("mul", "mul")]


def test_forward_values_of_a_gradient_keep_their_names_and_no_other_value_has_them() -> None:
    file = lab(
        HEAD + "def f(x):\n    h = jnp.tanh(x * 2)\n    out = jnp.sin(h)\n    return jnp.sum(out)\n"
    )
    shown = sourcerized(file, TransformedSource(transform="grad"), x="f32[5]")
    names = dict(bound(shown.text))
    assert names["h"] == "tanh"
    assert "out" not in names  # a gradient does not need it
    assert [value for name, value in bound(shown.text) if name.startswith("h_")] == []


def test_bodies_of_differentiated_loops_keep_names_that_are_certain() -> None:
    file = lab(
        HEAD
        + "def f(x):\n"
        + "    def step(c, v):\n"
        + "        part = jax.lax.dynamic_slice_in_dim(v, 1, 2)\n"
        + "        wave = jnp.sin(part) * c\n"
        + "        bent = jnp.tanh(wave)\n"
        + "        return c, bent\n"
        + "    _, rows = jax.lax.scan(step, jnp.ones(()), x)\n"
        + "    return jnp.sum(rows ** 2)\n"
    )
    shown = sourcerized(file, TransformedSource(transform="grad"), x="f32[5,4]")
    names = bound(shown.text)
    assert ("part", "dynamic_slice") in names
    assert [value for name, value in names if name.startswith("bent")] in ([], ["tanh"])
    backward = shown.text.partition("reverse=True")[0].rpartition("def ")[2]
    assert not {"part", "wave", "bent"} & {name for name, _ in bound(backward)}


def test_results_and_bodies_of_loops_have_the_users_names() -> None:
    file = lab(
        HEAD
        + "def f(xs):\n"
        + "    def step(total, x):\n        scaled = x * 3\n        return total + scaled, scaled\n"
        + "    last, parts = jax.lax.scan(step, jnp.zeros(()), xs)\n"
        + "    return last, parts\n"
    )
    text = sourcerized(file, xs="f32[5]").text
    assert "last, parts = lax.scan(" in text
    assert "(total, x):" in text
    assert ("scaled", "mul") in bound(text)


def test_name_that_python_or_the_text_needs_is_not_taken() -> None:
    file = lab(HEAD + "def f(x):\n    lax = jnp.sin(x)\n    sum = lax * 2\n    return sum\n")
    names = [name for name, _ in bound(sourcerized(file, x="f32[5]").text)]
    assert names == ["lax_1", "sum_1"]


def test_every_line_of_an_equation_leads_to_its_expression() -> None:
    file = lab(
        HEAD
        + "def f(x):\n"
        + "    y = jnp.einsum('ij,kj->ik', x, x)\n"
        + "    c, _ = jax.lax.scan(lambda c, v: (c + v, None), y[0], y)\n"
        + "    return c\n"
    )
    shown = sourcerized(file, x="f32[5,5]")
    lines = shown.text.split("\n")
    linked: dict[str, set[str]] = {}
    for link in shown.links:
        assert link.span is not None
        linked.setdefault(file.at(link.span), set()).add(lines[link.line].strip())
    einsum = linked["jnp.einsum('ij,kj->ik', x, x)"]
    assert "y = lax.dot_general(" in einsum
    assert "preferred_element_type=jnp.float32," in einsum
    assert any("lax.add(c, " in line for line in linked["c + v"])
    paths = {link.path for link in shown.links if "lax.add(c, " in lines[link.line]}
    assert [path.split("/")[1:] for path in paths] == [["body", "0"]]


def test_python_numbers_stay_what_they_are() -> None:
    file = lab(HEAD + "def f(x, n=2):\n    return x if n == 3 else x ** n\n")
    shown = sourcerized(file, x="f32[5]", n="3")
    assert "written for n = 3" in shown.text
    assert shown.equations == 0


@pytest.mark.parametrize(
    ("source", "transform", "stage", "words"),
    [
        ("def f(x):\n    return x if x.sum() > 0 else -x\n", "", "trace", "Tracer"),
        ("def f(x):\n    return x\n", "grad", "trace", "scalar-output"),
        ("def g(x):\n    return x\n", "", "find", "f is not defined"),
    ],
)
def test_failure_tells_its_stage(source: str, transform: str, stage: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        sourcerized(lab(HEAD + source), TransformedSource(transform=transform), x="f32[3]")
    assert error.value.failure.stage == stage
    assert words in error.value.failure.message


def test_array_that_no_text_holds_is_an_argument_unless_that_is_refused() -> None:
    file = lab(
        HEAD
        + "import numpy as np\nTABLE = np.random.default_rng(0).normal(size=2**19)\n"
        + "def f(x):\n    return x + jnp.sum(jnp.asarray(TABLE, 'float32') ** 3)\n"
    )
    shown = sourcerized(file, x="f32[3]")
    assert len(shown.text) < 2000
    with pytest.raises(UserError) as error:
        sourcerized(file, TransformedSource(constants="inline"), x="f32[3]")
    assert error.value.failure.stage == "sourcerize"


def test_recorder_is_left_as_it_was() -> None:
    file = lab(HEAD + "def f(x):\n    y = jnp.sin(x)\n    return y\n")
    sourcerized(file, x="f32[3]")
    assert file.recorder.naming is None
    assert file.seen(file.trace("f", x="f32[5]"))["y ="] == "f32[5]"
