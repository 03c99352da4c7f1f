"""Pretty style: random keys, and functions of several equations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from jaxsight.sourcerizer.equations.idioms import Window
from jaxsight.sourcerizer.equations.registry import IDIOMS
from jaxsight.sourcerizer.text.exprs import Expr, call
from jaxsight.sourcerizer.values.spelling import value

_KEYS: dict[str, Callable[[Any], list[Expr]]] = {
    "random_split": lambda params: (
        []
        if params["shape"] == (2,)
        else [value(params["shape"][0] if len(params["shape"]) == 1 else params["shape"])]
    ),
    "random_fold_in": lambda params: [],
    "random_clone": lambda params: [],
}


@IDIOMS("random_wrap convert_element_type? random_split|random_fold_in|random_clone random_unwrap")
def raw_keys(window: Window) -> Iterator[Expr]:
    equation = window.find(*_KEYS)
    key, *operands = (
        window.expr(window.origin(atom, "random_wrap", "convert_element_type"))
        for atom in equation.invars
    )
    name = equation.primitive.name.removeprefix("random_")
    yield call(
        f"jax.random.{name}", key, *operands, *_KEYS[equation.primitive.name](equation.params)
    )


@IDIOMS("convert_element_type? random_seed random_unwrap")
def new_raw_key(window: Window) -> Iterator[Expr]:
    seed = window.find("random_seed").invars[0]
    yield call("jax.random.PRNGKey", window.expr(window.origin(seed, "convert_element_type")))


@IDIOMS("convert_element_type random_fold_in")
def folded(window: Window) -> Iterator[Expr]:
    key, data = window.equations[-1].invars
    yield call(
        "jax.random.fold_in",
        window.expr(key),
        window.expr(window.origin(data, "convert_element_type")),
    )


@IDIOMS("jit|pjit add argmax")
def categorical(window: Window) -> Iterator[Expr]:
    drawn = window.equations[0]
    added, chosen = window.equations[1:]
    logits = next(atom for atom in added.invars if window.maker(atom) is None)
    key = window.expr(drawn.invars[0])
    yield call("jax.random.categorical", key, window.expr(logits))
    yield call(
        "jax.random.categorical", key, window.expr(logits), axis=value(chosen.params["axes"][0])
    )
