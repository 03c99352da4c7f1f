"""`ruff format` changes nothing of what is written."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from inline_snapshot import snapshot
from jax import lax

from jaxsight_source.api import write
from jaxsight_source.options import SourceOptions
from jaxsight_source.text.exprs import binary, call, subscript, tuple_
from jaxsight_source.text.layout import assignment
from jaxsight_source.text.statements import assign, formatted, lines
from tests.jaxsight_source.gate import check_format

RUFF = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
X = np.ones((3, 4), np.float32)


def attention(params, x):
    query, key, value = (x @ params[name] for name in ("query", "key", "value"))
    scores = jax.nn.softmax(query @ key.T / jnp.sqrt(4.0))
    indexed = (scores @ value).at[1, ::2].set(0.0)
    looped = lax.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[1] * i), (x, indexed))
    return {"a_long_name_for_a_result": indexed, "another_long_name_for_one": looped, "x": (x,)}


def programs():
    params = {name: np.ones((4, 4), np.float32) for name in ("query", "key", "value")}
    noise = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    yield attention, (params, X)
    yield jax.grad(lambda p, x: attention(p, x)["x"][0].sum() + jax.nn.relu(x).sum()), (params, X)
    yield lambda x: x @ noise[:4] + jnp.asarray(noise[:3]), (X,)
    yield lambda k: jax.random.normal(k, (3,)), (jax.random.key(0),)


@pytest.mark.skipif(RUFF is None, reason="ruff is not installed here")
@pytest.mark.parametrize("style", ["lax", "pretty"])
@pytest.mark.parametrize("shapes", [False, True])
def test_text_is_formatted_already(tmp_path, style, shapes):
    for index, (function, args) in enumerate(programs()):
        text = write(function, args, {}, SourceOptions(style=style, shapes=shapes, run=False)).text
        path = tmp_path / f"written_{index}.py"
        path.write_text(text)
    done = subprocess.run(
        [str(RUFF), "format", "--isolated", "--diff", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    linted = subprocess.run(
        [str(RUFF), "check", "--isolated", "--select", "F,E9,I", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert linted.returncode == 0, linted.stdout


def test_a_call_whose_name_does_not_fit_beside_its_target_stands_in_parentheses():
    target, function = (
        "result_of_quite_a_long_name",
        "jax.experimental.multihost_utils.of_all_the_hosts_there_are",
    )
    assert assignment(ast.Name(target), call(function, ast.Name("x")), "    ") == [
        f"    {target} = (",
        f"        {function}(x)",
        "    )",
    ]


def test_an_attribute_that_does_not_fit_beside_its_target_stands_in_parentheses(tmp_path):
    states = ast.Attribute(ast.Name("state"), "inner_states")
    held = ast.Attribute(subscript(states, ast.Constant("momentum_of_the_muon")), "inner_state")
    chain = ast.Attribute(subscript(held, ast.Constant(0)), "coefficients")
    lines = assignment(ast.Name("state_inner_states_muon_inner"), chain, "")
    assert lines == [
        "state_inner_states_muon_inner = (",
        '    state.inner_states["momentum_of_the_muon"].inner_state[0].coefficients',
        ")",
    ]
    check_format("\n".join(lines) + "\n")


def test_a_sum_that_ends_in_a_call_is_broken_in_the_call():
    bias = ast.Name("result_of_quite_a_long_name_of_some_layer_of_a_network")
    shaped = call(ast.Attribute(bias, "reshape"), ast.Constant(1), ast.Constant(4))
    total = ast.Name("total")
    lines = assignment(total, binary("+", ast.Name("product_of_two"), shaped), "")
    assert lines == [
        "total = product_of_two + result_of_quite_a_long_name_of_some_layer_of_a_network.reshape(",
        "    1, 4",
        ")",
    ]
    check_format("\n".join(lines) + "\n")
    twice = binary("+", binary("+", ast.Name("first"), ast.Name("product_of_two")), shaped)
    lines = assignment(total, twice, "")
    assert lines[0] == "total = ("
    check_format("\n".join(lines) + "\n")


def test_many_names_stand_on_as_few_lines_as_fit():
    names = [ast.Name(f"state_of_the_solver_{number}") for number in range(9)]
    made = lines([assign(tuple_(names), ast.Name("carry"))])
    text = "\n".join(row.text for row in made) + "\n"
    assert text.count("\n") == 5
    assert text.endswith(") = carry  # fmt: skip\n")
    check_format(text)


def test_a_remark_that_makes_a_line_too_long_is_spared():
    names = [ast.Name(f"state_of_the_solver_{number}") for number in range(9)]
    value = subscript(ast.Name("a" * 60), ast.Name("b" * 22))
    made = lines([assign(tuple_(names), value)])
    text = "\n".join(row.text for row in made) + "\n"
    assert "fmt" not in text
    assert text.count("\n") > 9
    assert max(map(len, text.splitlines())) <= 100


def test_long_strings_are_parted_after_spaces():
    said = "what is wrong here is said at great length, " * 4
    checked = call("check", ast.Name("x"), message=ast.Constant(said))
    text = "\n".join(assignment(ast.Name("checked"), checked, "    "))
    assert max(map(len, text.splitlines())) <= 88
    made: dict[str, str] = {}
    exec(textwrap.dedent(text), {"check": lambda x, message: message, "x": 0}, made)
    assert made["checked"] == said
    check_format(textwrap.dedent(text) + "\n")


def test_text_of_others_is_formatted():
    text = textwrap.dedent(
        """
        def step(state, x, *, rate=1e-3):
            'Advance the state.'
            first, second = state['first'], (state['second'] * x)
            if rate > 0 and not isinstance(x, int):
                scaled = lax.fori_loop(0, 10, lambda i, carry: (carry * 2.0 + i) @ first, jnp.zeros((2, 3)))
            elif rate: scaled = -(x ** 2) + (x if rate else second).sum()
            else:
                def inner(y): return [y[i, :, None] for i in range(3)]
                scaled = inner(second)[0]
            return {'first': (jnp.abs(scaled) + first) / jnp.maximum(second, 1.0) - jnp.tanh(first) * 0.5, 'x': x}
        """
    )
    assert formatted(text) == snapshot(
        '''\
def step(state, x, *, rate=1e-3):
    """Advance the state."""
    first, second = state["first"], state["second"] * x
    if rate > 0 and not isinstance(x, int):
        scaled = lax.fori_loop(
            0, 10, lambda i, carry: (carry * 2.0 + i) @ first, jnp.zeros((2, 3))
        )
    elif rate:
        scaled = -(x**2) + (x if rate else second).sum()
    else:

        def inner(y):
            return [y[i, :, None] for i in range(3)]

        scaled = inner(second)[0]
    return {
        "first": (jnp.abs(scaled) + first) / jnp.maximum(second, 1.0)
        - jnp.tanh(first) * 0.5,
        "x": x,
    }
'''
    )
