"""Brings values into the domains of functions, and keeps their size moderate."""

from __future__ import annotations

import math

from jaxsight.dataset.generating.types import FLOATS, PRODUCT, SUM, Value, operand, power
from jaxsight.dataset.generating.writer import Writer

CALM = 40.0
"""Larger magnitudes are scaled down, so that functions of them are finite in half precision."""


def number(value: float) -> str:
    """Return a number as programs spell it."""
    return repr(round(float(value), 6))


def fit(w: Writer, x: Value, low: float, high: float) -> Value:
    """Return a float value in [low, high], made from `x` with as little as that takes."""
    if low <= x.low and x.high <= high:
        return x
    x = w.short(x, "inner base", 26)
    if math.isfinite(low) and math.isfinite(high):
        return _between(w, x, low, high)
    return _above(w, x, low) if math.isfinite(low) else _below(w, x, high)


def _between(w: Writer, x: Value, low: float, high: float) -> Value:
    middle, half = (low + high) / 2, (high - low) / 2
    squash = w.pick(("jnp.tanh({x})", "jnp.sin({x})", "{p} / (1.0 + jnp.abs({x}))"))
    kind = w.between(0, 2)
    inside = min(high, x.high) - max(low, x.low)
    if kind == 0 and x.size >= 4 and inside > 0.6 * (x.high - x.low):
        text = f"jnp.clip({x}, {number(low)}, {number(high)})"
        return w.make(text, x, low=max(low, x.low), high=min(high, x.high))
    inner = squash.format(x=x, p=operand(x.text, PRODUCT))
    if middle == 0 and half >= 1:
        return w.make(inner, x, low=-1, high=1)
    scaled = f"{number(0.98 * half)} * {operand(inner, SUM + 15)}"
    if middle == 0:
        return w.make(scaled, x, low=-half, high=half)
    if kind == 1 and low >= 0 and high >= 1:
        text = f"{number(low)} + {number(high - low)} * jax.nn.sigmoid({x})"
        return w.make(text.replace("0.0 + ", "").replace(" 1.0 * ", " "), x, low=low, high=high)
    return w.make(f"{number(middle)} + {scaled}", x, low=low, high=high)


def _above(w: Writer, x: Value, low: float) -> Value:
    least = max(low, 0.0)
    plus = "" if not least else f" + {number(least)}"
    if low <= 0 and w.chance(0.3):
        return w.make(f"jax.nn.sigmoid({x})", x, low=0.01, high=1)
    options = [
        (f"jnp.abs({x}){plus}", x.bound),
        (f"jax.nn.softplus({x}){plus}", max(1.0, x.high + 1)),
        (f"jax.nn.sigmoid({x}){plus}", 1.0),
    ]
    if x.bound <= 6:
        options.append((f"{power(x.text, 2)}{plus}", x.bound**2))
    if least <= 0.35:
        options.append((f"jnp.exp(jnp.tanh({x}))", 2.72))
    text, high = w.pick(options)
    return w.make(text, x, low=least + (0.36 if "exp" in text else 0), high=high + least)


def _below(w: Writer, x: Value, high: float) -> Value:
    options = [(f"jnp.tanh({x})", -1.0, 1.0)] if high >= 1 else []
    if high >= 0:
        options.append((f"-jnp.abs({x})", -x.bound, 0.0))
    if high >= 2 and x.low < high and x.size >= 4:
        options.append((f"jnp.minimum({x}, {number(high)})", x.low, high))
    text, low, top = w.pick(options)
    return w.make(text, x, low=low, high=top)


def calm(w: Writer, x: Value, limit: float = CALM) -> Value:
    """Return a value of moderate size, made from `x`."""
    if x.dtype not in FLOATS or x.bound <= limit:
        return x
    x = w.short(x, "inner base", 40)
    if x.bound <= 8 * limit:
        scale = 4.0 if x.bound <= 4 * limit else 8.0
        text = f"{operand(x.text, PRODUCT)} / {number(scale)}"
        return w.make(text, x, low=x.low / scale, high=x.high / scale)
    choice = w.pick(("jnp.sin({x})", "jnp.arcsinh({x})", "{p} / {k}", "{p} / {k}"))
    if choice.endswith("{k}"):
        scale = float(2 ** math.ceil(math.log2(x.bound / 4)))
        text = f"{operand(x.text, PRODUCT)} / {number(scale)}"
        return w.make(text, x, low=x.low / scale, high=x.high / scale)
    high = math.asinh(x.bound) if "arcsinh" in choice else 1.0
    return w.make(choice.format(x=x), x, low=-high if x.low < 0 else 0.0, high=high)


def ends_of_product(x: Value, y: Value) -> tuple[float, float]:
    """Return the range of the product of two values."""
    if x.text == y.text:
        return 0.0 if x.low < 0 < x.high else min(x.low**2, x.high**2), x.bound**2
    corners = [a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return min(corners), max(corners)
