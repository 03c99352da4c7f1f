"""Elementwise functions: how programs spell them, their domains, and their ranges."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from jaxsight.dataset.generating.integers import bits, integers
from jaxsight.dataset.generating.ranges import calm, ends_of_product, fit, number
from jaxsight.dataset.generating.types import (
    AND,
    COMPLEX,
    NEGATION,
    OR,
    PRODUCT,
    SUM,
    XOR,
    Value,
    broadcast,
    infix,
    operand,
    power,
)
from jaxsight.dataset.generating.writer import Writer

INF = math.inf


@dataclass(frozen=True, slots=True)
class Unary:
    """A function of one real value.

    Attributes:
        text: with `{x}` for an argument, `{m}` for a factor, `{a}` for what a dot follows.
        names: of results.
        low: the lower end of the domain.
        high: the upper end.
        range: the range, or how to compute it from that of the argument.
        is_wide: whether it is defined for `float32` and `float64` only.
        is_step: whether it jumps: its argument has to be exact, and it has no derivative.
        weight: how often it is chosen.
    """

    text: str
    names: str
    low: float = -INF
    high: float = INF
    range: tuple[float, float] | Callable[[float], float] = (-1.0, 1.0)
    is_wide: bool = False
    is_step: bool = False
    weight: int = 2

    def ends(self, x: Value) -> tuple[float, float]:
        """Return the range for an argument in the domain."""
        if isinstance(self.range, tuple):
            return self.range
        one, other = self.range(x.low), self.range(x.high)
        return min(one, other), max(one, other)


def _softplus(x: float) -> float:
    return math.log1p(math.exp(min(x, 60)))


def _digamma(x: float) -> float:
    return math.log(x) - 0.6 / x


def _hump(x: float) -> float:
    return max(x, -0.3)


UNARY = (
    Unary("jnp.tanh({x})", "squashed bounded", range=math.tanh, weight=5),
    Unary("jnp.sin({x})", "wave oscillation", weight=4),
    Unary("jnp.cos({x})", "wave phase", weight=4),
    Unary("jnp.exp({x})", "growth exponentials", high=3.0, range=math.exp, weight=4),
    Unary("jnp.exp(-{w})", "decay", low=-3.0, range=lambda x: math.exp(-x)),
    Unary("jnp.expm1({x})", "growth", high=3.0, range=math.expm1),
    Unary("jnp.exp2({x})", "powers", high=4.0, range=lambda x: 2**x),
    Unary("jnp.log({x})", "logs", low=0.25, range=math.log, weight=4),
    Unary("jnp.log1p({x})", "logs", low=-0.8, range=math.log1p, weight=3),
    Unary("jnp.log2({x})", "bits octaves", low=0.25, range=math.log2),
    Unary("jnp.log10({x})", "decades", low=0.25, range=math.log10, weight=1),
    Unary("jnp.sqrt({x})", "roots", low=0.1, range=math.sqrt, weight=4),
    Unary("lax.rsqrt({x})", "inverse_roots", low=0.25, range=lambda x: x**-0.5, weight=3),
    Unary("jnp.cbrt({x})", "cube_roots", low=0.1, range=lambda x: x ** (1 / 3)),
    Unary("jnp.square({x})", "squares", range=lambda x: x * x, low=0.0, weight=2),
    Unary("jnp.abs({x})", "magnitude absolute", range=(0.0, INF), weight=3),
    Unary("jax.nn.sigmoid({x})", "gate probabilities", range=(0.01, 1.0), weight=4),
    Unary("jax.nn.softplus({x})", "rates scale", range=_softplus, weight=3),
    Unary("jax.nn.relu({x})", "activated rectified", range=lambda x: max(x, 0.0), weight=3),
    Unary("jax.nn.gelu({x})", "activated", range=_hump, weight=2),
    Unary("jax.nn.silu({x})", "activated", range=_hump, weight=2),
    Unary("jax.nn.elu({x})", "activated", range=lambda x: max(x, -1.0), weight=2),
    Unary("jax.nn.leaky_relu({x})", "activated", range=lambda x: max(x, 0.01 * x), weight=2),
    Unary("jax.nn.log_sigmoid({x})", "log_probabilities", range=lambda x: -_softplus(-x)),
    Unary("jax.nn.soft_sign({x})", "softened"),
    Unary("jax.nn.relu6({x})", "activated", range=(0.0, 6.0), weight=1),
    Unary("jax.nn.selu({x})", "activated", range=lambda x: max(1.06 * x, -1.8), weight=1),
    Unary("jax.nn.mish({x})", "activated", range=_hump, weight=1),
    Unary("jax.nn.hard_tanh({x})", "clipped", weight=1),
    Unary("jnp.arctan({x})", "angle", range=math.atan, weight=3),
    Unary("jnp.arcsin({x})", "angle", low=-0.92, high=0.92, range=math.asin, weight=3),
    Unary("jnp.arccos({x})", "angle", low=-0.92, high=0.92, range=math.acos, weight=3),
    Unary("jnp.sinh({x})", "hyperbolic", low=-3.0, high=3.0, range=math.sinh, weight=3),
    Unary("jnp.cosh({x})", "hyperbolic", low=-3.0, high=3.0, range=(1.0, 10.1), weight=3),
    Unary("jnp.tan({x})", "slope", low=-1.2, high=1.2, range=math.tan, weight=3),
    Unary("jnp.arcsinh({x})", "compressed", range=math.asinh, weight=3),
    Unary("jnp.arccosh({x})", "distance", low=1.2, range=math.acosh, weight=3),
    Unary("jnp.arctanh({x})", "rapidity", low=-0.9, high=0.9, range=math.atanh, weight=3),
    Unary("jnp.reciprocal({x})", "inverse", low=0.25, range=lambda x: 1 / x),
    Unary("1.0 / {w}", "inverse", low=0.25, range=lambda x: 1 / x),
    Unary("jnp.sinc({x})", "kernel_values", range=(-0.3, 1.0), weight=1),
    Unary("lax.erf({x})", "errors", weight=3),
    Unary("lax.erfc({x})", "tails", range=(0.0, 2.0), weight=3, high=3.0),
    Unary("lax.erf_inv({x})", "quantiles", low=-0.9, high=0.9, range=(-1.2, 1.2), weight=3),
    Unary("lax.logistic({x})", "gate", range=(0.01, 1.0)),
    Unary("lax.stop_gradient({x})", "frozen", range=lambda x: x, weight=2),
    Unary("jnp.nan_to_num({x})", "cleaned", range=lambda x: x, weight=1),
    Unary("jnp.deg2rad({x})", "radians", range=math.radians, weight=1),
    Unary("jax.nn.sigmoid({x}) * {w}", "gated", range=lambda x: max(x, -0.3)),
    Unary("lax.lgamma({x})", "log_gamma", 0.4, 20.0, (-0.13, 39.4), is_wide=True),
    Unary("lax.digamma({x})", "digammas", 0.4, 40.0, _digamma, is_wide=True, weight=2),
    Unary("jax.scipy.special.i0e({x})", "bessel", range=(0.0, 1.0), is_wide=True),
    Unary("jax.scipy.special.i1e({x})", "bessel", range=(-0.3, 0.3), is_wide=True),
    Unary("jax.scipy.special.logit({x})", "logits", 0.05, 0.95, (-3.0, 3.0), is_wide=True),
    Unary("jax.scipy.special.entr({x})", "entropies", 0.1, 3.0, (-3.3, 0.4), is_wide=True),
    Unary("jax.scipy.stats.norm.cdf({x})", "cumulative", range=(0.0, 1.0), is_wide=True),
    Unary("jax.scipy.stats.norm.logpdf({x})", "log_density", -5, 5, (-14.0, -0.9), is_wide=True),
    Unary("jnp.floor({x})", "floored", range=math.floor, is_step=True, weight=2),
    Unary("jnp.ceil({x})", "raised", range=math.ceil, is_step=True, weight=2),
    Unary("jnp.round({x})", "rounded", range=round, is_step=True, weight=2),
    Unary("lax.reduce_precision({x}, 8, 7)", "coarse", range=lambda x: x, is_step=True, weight=2),
    Unary("jnp.trunc({x})", "whole", range=math.trunc, is_step=True, weight=1),
    Unary(
        "jnp.sign({x}) * jnp.sqrt(jnp.abs({x}) + 0.1)",
        "signed_roots",
        range=(-2.5, 2.5),
        is_step=True,
    ),
)


SATURATING = (
    *("jnp.tanh", "jax.nn.sigmoid", "jax.nn.soft_sign", "jax.nn.relu6", "jax.nn.hard_tanh"),
    *("lax.erf", "lax.erfc", "lax.logistic", "jax.scipy.stats.norm.cdf", "jax.nn.log_sigmoid"),
)
"""Functions that are nearly constant far from zero."""
WAVE = UNARY[1]


@cache
def weighted(is_wide: bool, is_exact: bool) -> tuple[Unary, ...]:
    """Return the functions of a kind of value, each as often as it weighs."""
    return tuple(
        each
        for each in UNARY
        if (is_wide or not each.is_wide) and (is_exact or not each.is_step)
        for _ in range(each.weight)
    )


def apply(w: Writer, each: Unary, x: Value) -> Value:
    """Return a function of a float value, which is brought into its domain first."""
    if each.is_step and x.high - x.low < 6:
        each = UNARY[0]
    if each.text.split("(")[0] in SATURATING and (abs(x.low + x.high) > 3 or x.bound > 12):
        each = WAVE
    if x.size < 4 and each.names.startswith(("activated", "clipped")):
        each = UNARY[0]
    x = fit(w, calm(w, x), each.low, each.high)
    if each.text.count("{") > 1:
        x = w.short(x, "inner base", 26)
    low, high = each.ends(x)
    if high == INF:
        low, high = (max(0.0, x.low), x.bound)
    text = each.text.format(x=x, w=x.atom, a=x.atom)
    smooth = (
        not each.is_step or "sign(" in each.text or "reduce_prec" in each.text
    ) and "stop_gradient" not in each.text
    return w.make(text, x, low=low, high=high, is_smooth=smooth)


def unary(w: Writer, x: Value) -> Value:
    """Return a random elementwise function of a value of any dtype."""
    if x.is_float:
        return apply(w, w.pick(weighted(x.is_wide, x.is_exact)), x)
    if x.dtype in COMPLEX:
        return complex_unary(w, x)
    return w.make(f"~{operand(x.text, NEGATION)}", x) if x.dtype == "bool" else bits(w, x)


def unary_names(w: Writer, x: Value) -> tuple[Value, str]:
    """Return a random elementwise function of a value, and names for it."""
    if not x.is_float:
        return unary(w, x), "encoded mapped"
    each = w.pick(weighted(x.is_wide, x.is_exact))
    return apply(w, each, x), each.names


def complex_unary(w: Writer, x: Value) -> Value:
    """Return a function of a complex value that is a complex value again."""
    text, limit, high = w.pick(
        (
            ("jnp.conj({x})", INF, x.bound),
            ("{w} / (jnp.abs({x}) + 0.5)", INF, 1.0),
            ("jnp.tanh({x} / 8.0)", 6.0, 1.0),
            ("jnp.sin({x} / 4.0)", 6.0, 3.0),
            ("jnp.cos({x} / 4.0)", 6.0, 3.0),
            ("jnp.exp({x} / 4.0)", 8.0, 8.0),
            ("jnp.sqrt({x})", INF, 3.0),
            ("jnp.square({x})", 6.0, 40.0),
            ("{w} / (1.0 + jnp.abs({x}))", INF, 1.0),
            ("lax.complex(jnp.imag({x}), jnp.real({x}))", INF, x.bound),
            ("{w} * (0.5 + 0.5j)", INF, x.bound),
            ("jnp.log(jnp.abs({x}) + 1.0) * {w}", 6.0, 20.0),
        )
    )
    if x.bound > limit:
        text, high = "{w} / (1.0 + jnp.abs({x}))", 1.0
    inner = operand(x.text, PRODUCT) if " / " in text and "{w}" not in text else x.text
    text = text.format(x=inner if "({x} /" in text else x, w=operand(x.text, PRODUCT))
    return w.make(text, x, low=-high, high=high)


def literal(w: Writer, x: Value) -> str:
    """Return a number that is not 0 or 1, for a dtype."""
    if x.dtype in COMPLEX:
        return w.pick(("0.5j", "(1.0 + 0.5j)", "0.25", "2.0"))
    if x.is_float:
        return w.pick(("0.1", "0.25", "0.5", "0.7", "0.9", "1.5", "2.0", "3.0"))
    return str(w.between(2, 7))


def scaled(w: Writer, x: Value) -> Value:
    """Return a float value multiplied by a number, or with one added."""
    text = literal(w, x)
    by = 3.0 if x.dtype in COMPLEX else float(text)
    kind = w.between(0, 3)
    if kind == 0 or x.dtype in COMPLEX:
        ends = (x.low * by, x.high * by)
        return w.make(f"{text} * {operand(x.text, PRODUCT)}", x, low=ends[0], high=ends[1])
    if kind == 1:
        sum_ = f"{operand(x.text, SUM)} + {text}"
        return w.make(sum_, x, low=x.low + by, high=x.high + by)
    if kind == 2:
        return w.make(
            f"{text} - 0.5 * {operand(x.text, PRODUCT)}",
            x,
            low=by - x.high / 2,
            high=by - x.low / 2,
        )
    return w.make(f"{operand(x.text, PRODUCT)} / {text}", x, low=x.low / by, high=x.high / by)


def binary(w: Writer, x: Value, y: Value) -> Value:
    """Return a random function of two values of one dtype; their shapes broadcast."""
    if x.dtype == "bool":
        symbol, level = w.pick((("&", AND), ("|", OR), ("^", XOR)))
        return w.make(infix(x, symbol, y, level), x, y, is_exact=True)
    if x.is_integer:
        return integers(w, x, y)
    if x.dtype in COMPLEX:
        return _numbers(w, x, y)
    x, y = calm(w, x), calm(w, y)
    if w.chance(0.6):
        return _numbers(w, x, y)
    return _functions(w, x, y)


def _numbers(w: Writer, x: Value, y: Value) -> Value:
    shape = broadcast(x.shape, y.shape)
    kind = w.between(0, 6)
    if kind <= 1:
        text, low, high = infix(x, "+", y, SUM), x.low + y.low, x.high + y.high
    elif kind == 2 and x.text != y.text:
        text, low, high = infix(x, "-", y, SUM), x.low - y.high, x.high - y.low
    elif kind <= 4 or x.text == y.text:
        low, high = ends_of_product(x, y)
        text = infix(x, "*", y, PRODUCT)
    elif y.low >= 0.25 and x.dtype not in COMPLEX:
        text, low, high = infix(x, "/", y, PRODUCT), -x.bound / y.low, x.bound / y.low
        low = low if x.low < 0 else 0.0
    elif x.dtype in COMPLEX:
        text, low, high = f"{operand(x.text, PRODUCT)} / (1.0 + jnp.abs({y} + 2.0))", x.low, x.high
    else:
        guard = w.pick(("1.0 + jnp.abs({y})", "1.0 + {q}", "1.0 + jnp.exp(-jnp.abs({y}))"))
        divisor = guard.format(y=y, q=power(y.text, 2))
        text, low, high = f"{operand(x.text, PRODUCT)} / ({divisor})", x.low, x.high
        low, high = min(low, 0.0), max(high, 0.0)
    return w.make(text, x, y, shape=shape, low=low, high=high)


def _functions(w: Writer, x: Value, y: Value) -> Value:
    shape = broadcast(x.shape, y.shape)
    high = max(x.high, y.high)
    low = min(x.low, y.low)
    both = x.bound + y.bound
    options: list[tuple[str, float, float]] = [
        ("jnp.maximum({x}, {y})", max(x.low, y.low), high),
        ("jnp.minimum({x}, {y})", low, min(x.high, y.high)),
        ("jnp.logaddexp({x}, {y})", max(x.low, y.low), high + 0.7),
        ("jnp.arctan2({x}, jnp.abs({y}) + 0.5)", -1.6, 1.6),
        ("jnp.sqrt({q} + {r} + 1.0)", 1.0, both + 1),
        ("{m} * jax.nn.sigmoid({y})", min(x.low, 0.0), max(x.high, 0.0)),
        ("{m} * jnp.tanh({y})", -x.bound, x.bound),
        ("0.5 * ({s} + {s2})", (x.low + y.low) / 2, (x.high + y.high) / 2),
        ("jnp.power(jax.nn.sigmoid({x}) + 0.5, {y})", 0.0, 1.5 ** min(y.high, 9)),
        ("jnp.hypot({x} + 6.0, {y})", 0.1, both + 6),
        ("jnp.exp(-jnp.abs({s} - {n2}))", 0.0, 1.0),
        ("jnp.copysign({x}, {y})", -x.bound, x.bound),
        ("jnp.where({x} > {y}, {x}, {h} * {m2})", min(low, low / 2), max(high, high / 2)),
        ("jnp.remainder({x}, {k})", 0.0, 3.0),
        ("lax.rem({x}, lax.max(lax.abs({y}), lax.full_like({y}, 0.5)))", -y.bound, y.bound),
        ("jnp.heaviside({x}, 0.5) * {m2}", min(y.low, 0.0), max(y.high, 0.0)),
        ("lax.nextafter({x}, {y})", x.low, x.high),
        ("lax.pow(lax.logistic({x}), {y})", 0.0, 100.0),
    ]
    exact = x.is_exact and y.is_exact and x.text != y.text
    same = x.shape == y.shape
    choices = options[:11]
    if exact:
        choices = [*choices, *options[11:14], options[15]]
        if same:
            choices = [*choices, options[14], options[16]]
    if same and y.bound <= 2:
        choices.append(options[17])
    text, low, high = w.pick(choices)
    if x.size < 4 and any(part in text for part in ("imum(", "where", "heavi")):
        text, low, high = "0.5 * ({s} + {s2})", (x.low + y.low) / 2, (x.high + y.high) / 2
    if "nextafter" in text:
        w.blocked(x, y)
    if "power" in text and y.bound > 4:
        text, high = "jnp.power(jax.nn.sigmoid({x}) + 0.5, jnp.tanh({y}))", 2.0
    if text.count("{x}") + text.count("{s}") > 1:
        x, y = w.short(x, "left", 20), w.short(y, "right", 20)
    text = text.format(
        x=x,
        y=y,
        m=operand(x.text, PRODUCT),
        m2=operand(y.text, PRODUCT + 1),
        s=operand(x.text, SUM),
        s2=operand(y.text, SUM),
        n2=operand(y.text, SUM + 1),
        q=power(x.text, 2),
        r=power(y.text, 2),
        h=literal(w, x),
        k=w.pick(("1.5", "2.0", "2.5")),
    )
    return w.make(text, x, y, shape=shape, low=low, high=high)


def compare(w: Writer, x: Value, y: Value | None = None) -> Value:
    """Return a comparison of exact values, as booleans."""
    if x.dtype == "bool":
        return x
    if y is None or y.text == x.text:
        middle = (x.low + x.high) / 2
        if x.is_float:
            other = number(round(middle + w.pick((-0.1, -0.05, 0.05, 0.1)) * (x.high - x.low), 1))
            symbol = w.pick(("<", ">", "<=", ">="))
        elif (w.chance(0.3) or x.bound > 250) and not x.dtype.startswith("c"):
            text = f"{operand(x.text, PRODUCT)} % {w.between(2, 3)} {w.pick(('==', '!='))} 0"
            return w.make(text, x, dtype="bool", low=0, high=1, is_exact=True)
        else:
            symbol, other = w.pick(("<", ">", "<=", ">=")), str(max(1, int(min(middle, 100))))
        shape = x.shape
    else:
        symbol = w.pick(("<", ">", "<=", ">=") if x.is_float else ("<", ">", "<=", ">=", "!="))
        other, shape = operand(y.text, OR), broadcast(x.shape, y.shape)
    text = f"{operand(x.text, OR)} {symbol} {other}"
    return w.make(text, x, dtype="bool", shape=shape, low=0, high=1, is_exact=True)


def chain(w: Writer, x: Value, length: int, width: int = 44) -> Value:
    """Return a value after `length` random elementwise steps, long ones assigned to names."""
    for _ in range(length):
        before = x
        x, names = (scaled(w, x), "scaled") if _scales(w, x) else unary_names(w, x)
        if x.is_float and x.bound > 200:
            x = calm(w, x)
        if len(x.text) > width:
            x = w.let(names, x)
        if x.dtype != before.dtype:
            break
    return x


def _scales(w: Writer, x: Value) -> bool:
    return x.dtype != "bool" and not x.is_integer and w.chance(0.3)


def tree(w: Writer, values: list[Value], depth: int, width: int = 40) -> Value:
    """Return a random expression of values of one dtype whose shapes broadcast."""
    if depth <= 0 or (depth == 1 and w.chance(0.2)):
        return w.pick(values)
    kind = w.random.random()
    if kind < 0.42:
        inner = tree(w, values, depth - 1, width)
        x, names = unary_names(w, w.short(inner, "inner", width))
    elif kind < 0.54 and values[0].dtype != "bool" and not values[0].is_integer:
        x, names = scaled(w, tree(w, values, depth - 1, width)), "scaled"
    else:
        one = w.short(tree(w, values, depth - 1, width), "left first", width - 16)
        other = w.short(tree(w, values, depth - 1, width), "right second", width - 16)
        x, names = binary(w, one, other), "mixed combined blended"
    if x.is_float and x.bound > 400:
        x = calm(w, x)
    return w.let(names, x) if len(x.text) > width else x
