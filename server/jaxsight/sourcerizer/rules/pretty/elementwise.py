"""Pretty style: operators and NumPy's names for single equations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jaxsight.sourcerizer.equations.idioms import Window
from jaxsight.sourcerizer.equations.registry import IDIOMS, PRETTY
from jaxsight.sourcerizer.equations.view import View
from jaxsight.sourcerizer.text.exprs import Attribute, Binary, Expr, Unary, call
from jaxsight.sourcerizer.values import scalars
from jaxsight.sourcerizer.values.spelling import value

OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "pow": "**",
    "and": "&", "or": "|", "xor": "^", "shift_left": "<<",
    "shift_right_arithmetic": ">>", "shift_right_logical": ">>",
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
}  # fmt: skip

_NUMPY = {
    "abs": "abs", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "cbrt": "cbrt", "ceil": "ceil",
    "clamp": "clip", "conj": "conj", "cos": "cos", "cosh": "cosh", "exp": "exp", "exp2": "exp2",
    "expm1": "expm1", "floor": "floor", "imag": "imag", "is_finite": "isfinite", "log": "log",
    "log1p": "log1p", "max": "maximum", "min": "minimum", "nextafter": "nextafter",
    "population_count": "bitwise_count", "pow": "power", "real": "real", "round": "round",
    "sign": "sign", "sin": "sin", "sinh": "sinh", "sqrt": "sqrt", "square": "square",
    "tan": "tan", "tanh": "tanh", "and": "logical_and", "or": "logical_or", "not": "logical_not",
}  # fmt: skip


@PRETTY(*{*OPERATORS, *_NUMPY} - {"clamp", "square", "not"})
def operator(view: View) -> Iterator[Expr]:
    if all(literal is not None for literal in view.literals):
        return  # Python would compute it
    if (symbol := OPERATORS.get(view.name)) and len(view.operands) == 2:
        yield Binary(symbol, *view.operands)
    if (name := _NUMPY.get(view.name)) is not None:
        yield call(f"jnp.{name}", *view.operands)


@IDIOMS("ne")
def is_nan(window: Window) -> Iterator[Expr]:
    """Yield `jnp.isnan` for a value that is compared with itself."""
    if len(window.inputs) == 1 and window.equations[0].invars[0] is window.equations[0].invars[1]:
        yield call("jnp.isnan", window.expr(window.inputs[0]))


@PRETTY("neg", "not")
def unary(view: View) -> Iterator[Expr]:
    yield Unary("-" if view.name == "neg" else "~", *view.operands)


@PRETTY("integer_pow")
def integer_pow(view: View) -> Iterator[Expr]:
    (base,) = view.operands
    yield Binary("**", base, value(view.params["y"]))


@PRETTY("square")
def square(view: View) -> Iterator[Expr]:
    yield call("jnp.square", *view.operands)


@PRETTY("logistic")
def logistic(view: View) -> Iterator[Expr]:
    yield call("jax.nn.sigmoid", *view.operands)


@PRETTY("clamp")
def clamp(view: View) -> Iterator[Expr]:
    low, x, high = view.operands
    yield call("jnp.clip", x, low, high)


@PRETTY("convert_element_type")
def convert(view: View) -> Iterator[Expr]:
    (x,) = view.operands
    if view.literals[0] is None:
        yield call(Attribute(x, "astype"), scalars.dtype(view.params["new_dtype"]))


@PRETTY("select_n")
def select(view: View) -> Iterator[Expr]:
    if len(view.operands) == 3 and view.inputs[0].dtype == np.bool_:
        which, if_false, if_true = view.operands
        yield call("lax.select", which, if_true, if_false)


@PRETTY("top_k")
def top_k(view: View) -> Iterator[Expr]:
    yield call("lax.top_k", *view.operands, value(view.params["k"]))


@PRETTY("stop_gradient")
def stop_gradient(view: View) -> Iterator[Expr]:
    yield call("lax.stop_gradient", *view.operands)
