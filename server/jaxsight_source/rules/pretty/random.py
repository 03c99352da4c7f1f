"""Pretty style: random keys, and functions of several equations."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS
from jaxsight_source.text.exprs import call
from jaxsight_source.values.spelling import value


@IDIOMS("random_wrap convert_element_type? random_split|random_fold_in|random_clone random_unwrap")
def raw_keys(window: Window) -> Iterator[ast.expr]:
    equation = window.find("random_split", "random_fold_in", "random_clone")
    operands = window.operands(equation, "random_wrap", "convert_element_type")
    shape = equation.params.get("shape", (2,))  # what `split` returns by default
    count = [] if shape == (2,) else [value(shape[0] if len(shape) == 1 else shape)]
    yield call(f"jax.{equation.primitive.name.replace('_', '.', 1)}", *operands, *count)


@IDIOMS("convert_element_type? random_seed random_unwrap")
def new_raw_key(window: Window) -> Iterator[ast.expr]:
    seeded = window.find("random_seed")
    yield call("jax.random.PRNGKey", *window.operands(seeded, "convert_element_type"))


@IDIOMS("convert_element_type random_fold_in")
def folded(window: Window) -> Iterator[ast.expr]:
    last = window.equations[-1]
    yield call("jax.random.fold_in", *window.operands(last, "convert_element_type"))


@IDIOMS("jit|pjit add argmax")
def categorical(window: Window) -> Iterator[ast.expr]:
    drawn = window.equations[0]
    added, chosen = window.equations[1:]
    logits = next(atom for atom in added.invars if window.maker(atom) is None)
    key = window.expr(drawn.invars[0])
    yield call("jax.random.categorical", key, window.expr(logits))
    yield call(
        "jax.random.categorical", key, window.expr(logits), axis=value(chosen.params["axes"][0])
    )
