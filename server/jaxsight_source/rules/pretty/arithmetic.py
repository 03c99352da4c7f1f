"""Pretty style: operators, NumPy's names, functions of reductions, and products of arrays."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import jax

from jaxsight_source.compat.jaxpr_types import Equation, Params
from jaxsight_source.equations.idioms import Window
from jaxsight_source.equations.registry import IDIOMS, PRETTY, EquationView, passed, stepping
from jaxsight_source.text.exprs import FALSE, TRUE, binary, call
from jaxsight_source.values import spelling
from jaxsight_source.values.spelling import value

OPERATORS = {
    "add": "+", "add_any": "+", "sub": "-", "mul": "*", "div": "/", "rem": "%", "pow": "**",
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
def operator(view: EquationView) -> Iterator[ast.expr]:
    if all(literal is not None for literal in view.literals):  # Python would compute it
        if view.name == "add_any":
            yield call("lax.add", *view.operands)
        return
    if (symbol := OPERATORS.get(view.name)) and len(view.operands) == 2:
        yield binary(symbol, *view.operands)
    if (name := _NUMPY.get(view.name)) is not None:
        yield call(f"jnp.{name}", *view.operands)


@IDIOMS("ne")
def is_nan(window: Window) -> Iterator[ast.expr]:
    """Yield `jnp.isnan` for a value that is compared with itself."""
    if len(window.inputs) == 1 and window.equations[0].invars[0] is window.equations[0].invars[1]:
        yield call("jnp.isnan", window.expr(window.inputs[0]))


REDUCTIONS = {
    "reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "reduce_prod": "prod",
    "reduce_and": "all", "reduce_or": "any", "argmax": "argmax", "argmin": "argmin",
}  # fmt: skip


def axis(axes: tuple[int, ...], rank: int) -> dict[str, ast.expr]:
    """Return `axis=1`, `axis=(0, 2)`, or nothing for all axes."""
    if len(axes) == rank:
        return {}
    return {"axis": value(axes[0] if len(axes) == 1 else tuple(axes))}


@PRETTY(*REDUCTIONS)
def reduction(view: EquationView) -> Iterator[ast.expr]:
    (x,) = view.operands
    over = axis(view.params["axes"], view.inputs[0].ndim)
    yield call(f"jnp.{REDUCTIONS[view.name]}", x, **over)
    if view.name.startswith("arg"):
        yield call(f"jnp.{REDUCTIONS[view.name]}", x, axis=value(view.params["axes"][0]))


_KEPT: dict[str, ast.expr] = {"keepdims": TRUE}

_REDUCE = "|".join(name for name in REDUCTIONS if name.startswith("reduce"))

_CHANGES = ("convert_element_type", "broadcast_in_dim", "reshape")


def _axes(equation: Equation) -> dict[str, ast.expr]:
    return axis(equation.params["axes"], equation.invars[0].aval.ndim)


def _kept(window: Window, reduced: Equation) -> list[dict[str, ast.expr]]:
    """Return the `keepdims` options to try, the likelier first."""
    keeps = window.output.aval.ndim == reduced.invars[0].aval.ndim
    return [_KEPT, {}] if keeps else [{}]


_MEAN = "convert_element_type? reduce_sum broadcast_in_dim? div convert_element_type?"


@IDIOMS(
    f"{_REDUCE} broadcast_in_dim|reshape",
    f"convert_element_type {_REDUCE} broadcast_in_dim? convert_element_type",
    f"convert_element_type {_REDUCE} convert_element_type broadcast_in_dim",
    _MEAN,
)
def converted_reduction(window: Window) -> Iterator[ast.expr]:
    """Yield reductions that convert their operand and result, and means."""
    reduced = window.find(*REDUCTIONS)
    is_mean = any(equation.primitive.name == "div" for equation in window.equations)
    name = "mean" if is_mean else REDUCTIONS[reduced.primitive.name]
    x = window.expr(window.origin(reduced.invars[0], "convert_element_type"))
    for keepdims in _kept(window, reduced):
        yield call(f"jnp.{name}", x, **_axes(reduced), **keepdims)


@IDIOMS("reshape argmax|argmin")
def position(window: Window) -> Iterator[ast.expr]:
    flattened, search = window.equations
    yield call(f"jnp.{search.primitive.name}", window.expr(flattened.invars[0]))


_SHIFTED = "reduce_max max? broadcast_in_dim? stop_gradient? broadcast_in_dim? sub exp reduce_sum"
_FINITE = (
    "reduce_max max? is_finite broadcast_in_dim? select_n stop_gradient? broadcast_in_dim? "
    "sub exp reduce_sum abs? log"
)


@IDIOMS(
    f"{_SHIFTED} broadcast_in_dim div",
    f"{_SHIFTED} broadcast_in_dim? log broadcast_in_dim? sub",
    f"{_FINITE} add broadcast_in_dim?",
    f"{_FINITE} reshape|squeeze|stop_gradient* add broadcast_in_dim?",
)
def of_exponentials(window: Window) -> Iterator[ast.expr]:
    """Yield a function of `jax.nn`, without its axes if these may be its default."""
    last = window.equations[-1].primitive.name
    name = {"div": "softmax", "sub": "log_softmax"}.get(last, "logsumexp")
    reduced = window.find("reduce_max")
    x = window.expr(window.origin(reduced.invars[0], "convert_element_type"))
    axes, rank = tuple(reduced.params["axes"]), reduced.invars[0].aval.ndim
    choices: list[dict[str, ast.expr]] = [{}] if axes in ((rank - 1,), tuple(range(rank))) else []
    for over in (*choices, {"axis": value(axes[0] if len(axes) == 1 else axes)}):
        for keepdims in _kept(window, reduced) if name == "logsumexp" else [{}]:
            yield call(f"jax.nn.{name}", x, **over, **keepdims)


@IDIOMS("integer_pow mul add mul tanh add mul mul", "div|mul|neg|erf|erfc|add* mul copy|copy_p?")
def gelu(window: Window) -> Iterator[ast.expr]:
    if len(window.inputs) == 1 and len(window.equations) >= 4:
        x = window.expr(window.inputs[0])
        yield call("jax.nn.gelu", x)
        yield call("jax.nn.gelu", x, approximate=FALSE)


@IDIOMS("mul reduce_sum sqrt", "square|integer_pow reduce_sum sqrt")
def norm(window: Window) -> Iterator[ast.expr]:
    reduced = window.find("reduce_sum")
    if len(window.inputs) == 1:
        yield call("jnp.linalg.norm", window.expr(window.inputs[0]), **_axes(reduced))


@IDIOMS(f"convert_element_type|broadcast_in_dim|reshape* {'|'.join(OPERATORS)}|max|min")
def broadcasting(window: Window) -> Iterator[ast.expr]:
    """Yield operators and functions that convert and broadcast their operands themselves."""
    last = window.equations[-1]
    operands = window.operands(last, *_CHANGES)
    if (symbol := OPERATORS.get(last.primitive.name)) is not None:
        yield binary(symbol, *operands)
    else:
        yield call(f"jnp.{_NUMPY[last.primitive.name]}", *operands)


_Pairs: TypeAlias = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
"""The contracted axes of both operands, and the batch axes."""

_BATCH, _LEFT, _RIGHT, _SUMMED = "bcdefgh", "ijlmno", "pqrstuv", "kxyzw"
"""Letters of `einsum`: for batch axes, free axes of each operand, and contracted axes."""


def _letters(numbers: _Pairs, ranks: Sequence[int]) -> tuple[str, str, str]:
    (left_summed, right_summed), (left_batch, right_batch) = numbers
    of_left: dict[int, str] = dict(zip(left_summed, _SUMMED, strict=False))
    of_right: dict[int, str] = dict(zip(right_summed, _SUMMED, strict=False))
    of_left |= dict(zip(left_batch, _BATCH, strict=False))
    of_right |= dict(zip(right_batch, _BATCH, strict=False))
    free_left = [axis for axis in range(ranks[0]) if axis not in of_left]
    free_right = [axis for axis in range(ranks[1]) if axis not in of_right]
    of_left |= dict(zip(free_left, _LEFT, strict=False))
    of_right |= dict(zip(free_right, _RIGHT, strict=False))
    of_result = [of_left[axis] for axis in left_batch]
    of_result += [of_left[axis] for axis in free_left] + [of_right[axis] for axis in free_right]
    return (
        "".join(of_left[axis] for axis in range(ranks[0])),
        "".join(of_right[axis] for axis in range(ranks[1])),
        "".join(of_result),
    )


def _options(params: Params) -> Iterator[dict[str, ast.expr]]:
    named: dict[str, ast.expr] = {}
    if params.get("precision") is not None:
        named["precision"] = precision(params["precision"])
    yield named
    if params.get("preferred_element_type") is not None:
        yield named | {"preferred_element_type": spelling.dtype(params["preferred_element_type"])}


def precision(parameter: object) -> ast.expr:
    """Return a precision by its name, if both operands have the same."""
    match parameter:
        case (jax.lax.Precision() as one, other) if one is other:
            return ast.Constant(one.name.lower())
        case _:
            return value(parameter)


def _einsum(
    params: Params, x: ast.expr, y: ast.expr, ranks: Sequence[int], order: Sequence[int] | None
) -> Iterator[ast.expr]:
    first, second, output = _letters(params["dimension_numbers"], ranks)
    if order is not None:
        output = "".join(output[axis] for axis in order)
    for named in _options(params):
        yield call("jnp.einsum", ast.Constant(f"{first},{second}->{output}"), x, y, **named)
        yield call("jnp.einsum", ast.Constant(f"{second},{first}->{output}"), y, x, **named)


@PRETTY("dot_general")
def product(view: EquationView) -> Iterator[ast.expr]:
    x, y = view.operands
    ranks = [aval.ndim for aval in view.inputs]
    (left_summed, right_summed), (left_batch, _) = view.params["dimension_numbers"]
    if len(left_summed) == 1 and left_summed[0] == ranks[0] - 1:
        if right_summed[0] == max(ranks[1] - 2, 0):
            yield binary("@", x, y)
            for named in _options(view.params):
                if named:
                    yield call("jnp.matmul", x, y, **named)
        if not left_batch and right_summed[0] == ranks[1] - 1:
            yield call("jnp.inner", x, y)
    if not left_batch:
        for named in _options(view.params):
            if ranks == [1, 1]:
                yield call("jnp.dot", x, y, **named)
            if len(left_summed) == 0:
                yield call("jnp.tensordot", x, y, axes=ast.Constant(0), **named)
    yield from _einsum(view.params, x, y, ranks, None)
    for named in _options(view.params):
        if ranks == [2, 2]:
            yield call("lax.dot", x, y, **named)
        dimensions = value(view.params["dimension_numbers"])
        yield call("lax.dot_general", x, y, dimensions, **named)


@PRETTY("conv_general_dilated")
def convolution(view: EquationView) -> Iterator[ast.expr]:
    """Yield convolutions with dimension letters, `"SAME"` or `"VALID"`, and without defaults."""
    params = view.params
    numbers = params["dimension_numbers"]
    usual = all(spec == tuple(range(len(spec))) for spec in numbers)
    rank = len(numbers.lhs_spec) - 2
    named = stepping(params, "lhs_dilation", "rhs_dilation")
    if not usual:
        letters = "DHW"[-rank:] if rank <= 3 else ""
        named["dimension_numbers"] = value(
            tuple(
                "".join(name for _, name in sorted(zip(spec, kind + letters, strict=True)))
                for spec, kind in zip(numbers, ("NC", "OI", "NC"), strict=True)
            )
        )
    for key in ("feature_group_count", "batch_group_count"):
        if params[key] != 1:
            named[key] = value(params[key])
    named |= passed(params, "precision", "preferred_element_type")
    strides = value(params["window_strides"])
    for padding in (ast.Constant("SAME"), ast.Constant("VALID"), value(params["padding"])):
        if usual and not named and isinstance(padding, ast.Constant):
            yield call("lax.conv", *view.operands, strides, padding)
        yield call("lax.conv_general_dilated", *view.operands, strides, padding, **named)


@IDIOMS("dot_general transpose")
def product_transposed(window: Window) -> Iterator[ast.expr]:
    product, moved = window.equations
    x, y = window.operands(product)
    ranks = [atom.aval.ndim for atom in product.invars]
    yield from _einsum(product.params, x, y, ranks, moved.params["permutation"])
