"""Sorts keep the order that their comparator describes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight_source.compat.staging import evaluate, opened
from jaxsight_source.hlo.reading import read as read_hlo
from jaxsight_source.stablehlo.program import UnreadableProgram
from jaxsight_source.stablehlo.reading import read

HARD = np.array([1, -0.0, np.nan, 3, 0.0, -np.inf, 1, -2, np.inf, -np.nan], np.float32)


def run(program, *arguments):
    return [np.asarray(each) for each in evaluate(opened(program.jaxpr), *arguments)]


def sorted_by(comparator, element="f32"):
    """Return a sort of numbers and their positions by the text of a comparator."""
    return f"""
    func.func @main(%x: tensor<10x{element}>, %i: tensor<10xi32>) -> (tensor<10x{element}>, tensor<10xi32>) {{
      %0:2 = "stablehlo.sort"(%x, %i) <{{dimension = 0 : i64, is_stable = true}}> ({{
      ^bb0(%a: tensor<{element}>, %b: tensor<{element}>, %c: tensor<i32>, %d: tensor<i32>):
        {comparator}
        stablehlo.return %r : tensor<i1>
      }}) : (tensor<10x{element}>, tensor<10xi32>) -> (tensor<10x{element}>, tensor<10xi32>)
      return %0#0, %0#1 : tensor<10x{element}>, tensor<10xi32>
    }}
    """


def compare(direction, one, other, kind="FLOAT", element="f32"):
    return (
        f"stablehlo.compare {direction}, {one}, {other}, {kind} : "
        f"(tensor<{element}>, tensor<{element}>) -> tensor<i1>"
    )


POSITIONS = np.arange(10, dtype=np.int32)
NUMBERS = np.array([3, -1, 4, -1, 5, 9, 2, 6, 5, 3], np.float32)


@pytest.mark.parametrize(
    ("comparator", "order"),
    [
        (compare("LT", "%a", "%b"), np.argsort(NUMBERS, stable=True)),
        (compare("GT", "%a", "%b"), np.argsort(-NUMBERS, stable=True)),
        (compare("LT", "%b", "%a"), np.argsort(-NUMBERS, stable=True)),
        (compare("GT", "%a", "%b", "TOTALORDER"), np.argsort(-NUMBERS, stable=True)),
    ],
)
def test_a_direction_is_kept(comparator, order):
    found = run(read(sorted_by(f"%r = {comparator}")), NUMBERS, POSITIONS)
    assert np.array_equal(found[0], NUMBERS[order])
    assert np.array_equal(found[1], order)


@pytest.mark.parametrize("joined", ["or", "select"])
def test_the_second_key_decides_between_equal_ones(joined):
    rest = compare("GT", "%c", "%d", "SIGNED", "i32")
    both = (
        "%t = stablehlo.and %e, %s : tensor<i1>\n        %r = stablehlo.or %l, %t : tensor<i1>"
        if joined == "or"
        else "%r = stablehlo.select %e, %s, %l : tensor<i1>, tensor<i1>"
    )
    comparator = f"""%l = {compare("LT", "%a", "%b")}
        %e = {compare("EQ", "%a", "%b")}
        %s = {rest}
        {both}"""
    order = np.lexsort((-POSITIONS, NUMBERS))
    assert np.array_equal(run(read(sorted_by(comparator)), NUMBERS, POSITIONS)[1], order)


@pytest.mark.parametrize(
    "comparator",
    [
        f"%r = {compare('LE', '%a', '%b')}",
        f"%r = {compare('LT', '%a', '%a')}",
        (
            f"%n = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>\n"
            f"        %m = stablehlo.constant dense<1.0> : tensor<f32>\n"
            f"        %r = {compare('LT', '%n', '%m')}"
        ),
        f"%n = stablehlo.negate %a : tensor<f32>\n        %r = {compare('LT', '%n', '%b')}",
        (
            f"%p = stablehlo.multiply %a, %a : tensor<f32>\n"
            f"        %q = stablehlo.multiply %b, %b : tensor<f32>\n"
            f"        %r = {compare('LT', '%p', '%q')}"
        ),
    ],
)
def test_what_is_no_order_of_keys_is_refused(comparator):
    with pytest.raises(UnreadableProgram, match="expected a comparator that orders by keys"):
        read(sorted_by(comparator))


SORTS = {
    "ascending": lambda x: jnp.sort(x),
    "descending": lambda x: jnp.sort(x, descending=True),
    "positions": lambda x: jnp.argsort(x, stable=True),
    "two keys": lambda x: lax.sort((x, -x, jnp.arange(x.size)), num_keys=2),
    "integers": lambda x: lax.sort((jnp.arange(x.size) % 3, x), num_keys=1),
    "half": lambda x: jnp.sort(x.astype(jnp.bfloat16)),
}


@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("stage", ["before", "after"])
def test_sorts_of_jax_keep_their_values(name, stage):
    compiled = jax.jit(SORTS[name]).lower(HARD)
    text = compiled.compile().as_text() if stage == "after" else compiled.as_text("hlo")
    found = run(read_hlo(text), HARD)
    for one, other in zip(found, jax.tree.leaves(jax.jit(SORTS[name])(HARD)), strict=True):
        wide = np.float32 if one.dtype == jnp.bfloat16 else one.dtype
        np.testing.assert_array_equal(one.astype(wide), np.asarray(other).astype(wide))
        assert np.array_equal(np.signbit(one), np.signbit(other))


def test_a_sort_of_jax_stays_one_sort():
    text = jax.jit(SORTS["two keys"]).lower(HARD).as_text()
    (equation,) = (each for each in read(text).jaxpr.eqns if each.primitive.name == "sort")
    assert equation.params["num_keys"] == 2
    assert len(equation.invars) == 3
