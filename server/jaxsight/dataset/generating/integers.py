"""Functions of integers and their bits."""

from __future__ import annotations

from jaxsight.dataset.generating.ranges import ends_of_product
from jaxsight.dataset.generating.types import (
    AND,
    BITS,
    NEGATION,
    OR,
    PRODUCT,
    SHIFT,
    SUM,
    XOR,
    Value,
    broadcast,
    infix,
    operand,
    power,
)
from jaxsight.dataset.generating.writer import Writer


def bits(w: Writer, x: Value) -> Value:
    """Return a function of integers with the same dtype."""
    width, unsigned = BITS[x.dtype], x.dtype.startswith("u")
    shift = w.between(1, min(5, width - 3))
    mask = w.pick((3, 7, 15, 31, 63))
    wrap = 2 ** (width - (not unsigned)) - 1
    full = (0.0 if unsigned else -wrap - 1.0, float(wrap))
    whole = full if x.low < 0 or unsigned else (0.0, max(1.0, x.high))
    options: list[tuple[str, tuple[float, float]]] = [
        (f"{operand(x.text, AND)} & {mask}", (0.0, mask)),
        (f"{operand(x.text, XOR)} ^ {mask}", whole if whole == full else (0.0, x.high + mask)),
        (f"{operand(x.text, OR)} | {mask}", whole if whole == full else (0.0, x.high + mask)),
        (
            f"{operand(x.text, SHIFT)} << {shift}",
            _wrapping(x.low * 2**shift, x.high * 2**shift, full),
        ),
        (f"{operand(x.text, SHIFT)} >> {shift}", (x.low / 2, x.high / 2)),
        (f"~{operand(x.text, NEGATION)}", full),
        (f"lax.population_count({x})", (0.0, width)),
        (f"jnp.bitwise_count({x}).astype({x.atom}.dtype)", (0.0, width)),
        (f"lax.clz({x})", (0.0, width)),
        (f"{operand(x.text, PRODUCT)} * 3", _wrapping(x.low * 3, x.high * 3, full)),
        (f"{operand(x.text, PRODUCT)} * 5", _wrapping(x.low * 5, x.high * 5, full)),
        (f"{operand(x.text, SUM)} + {w.between(1, 9)}", _wrapping(x.low, x.high + 9, full)),
        (f"{operand(x.text, PRODUCT)} % {w.between(3, 11)}", (0.0, 11.0)),
        (f"{operand(x.text, PRODUCT)} // {w.between(2, 7)}", (min(x.low, 0.0), x.high / 2)),
        (f"jnp.minimum({x}, {w.between(20, 60)})", (x.low, min(x.high, 60.0))),
        (f"jnp.maximum({x}, {w.between(3, 30)})", (max(3.0, x.low), max(x.high, 30.0))),
        (f"jnp.clip({x}, 5, {w.between(20, 60)})", (5.0, 60.0)),
        (power(x.text, 2), full),
    ]
    if not unsigned:
        options += [(f"jnp.abs({x})", (0.0, x.bound)), (f"jnp.sign({x})", (-1.0, 1.0))]
        options += [(f"-{operand(x.text, NEGATION)}", (-x.high, -x.low))]
    text, (low, high) = w.pick(options)
    return w.make(text, x, low=low, high=high, is_exact=True)


def _wrapping(low: float, high: float, full: tuple[float, float]) -> tuple[float, float]:
    """Return a range of integers, or all of them where it overflows."""
    return (low, high) if full[0] <= low and high <= full[1] else full


def integers(w: Writer, x: Value, y: Value) -> Value:
    """Return a function of two values of integers of one dtype; their shapes broadcast."""
    shape = broadcast(x.shape, y.shape)
    width = BITS[x.dtype]
    wrap = 2.0 ** (width - 1)
    full = (0.0, 2.0**width) if x.dtype.startswith("u") else (-wrap, wrap)
    union = (0.0, x.high + y.high) if x.low >= 0 and y.low >= 0 else full
    operators = [
        ("+", SUM, _wrapping(x.low + y.low, x.high + y.high, full)),
        ("-", SUM, _wrapping(x.low - y.high, x.high - y.low, full)),
        ("*", PRODUCT, _wrapping(*ends_of_product(x, y), full)),
        ("&", AND, (0.0 if x.low >= 0 else full[0], x.high)),
        ("|", OR, _wrapping(*union, full)),
        ("^", XOR, _wrapping(*union, full)),
    ]
    if x.text == y.text:
        operators = operators[2:3]
    kind = w.between(0, 9)
    if kind <= 5 or x.text == y.text:
        symbol, level, (low, high) = w.pick(operators)
        text = infix(x, symbol, y, level)
    elif kind == 6:
        text, (low, high) = w.pick(
            (
                (f"jnp.maximum({x}, {y})", (max(x.low, y.low), max(x.high, y.high))),
                (f"jnp.minimum({x}, {y})", (min(x.low, y.low), min(x.high, y.high))),
            )
        )
    elif kind == 7:
        symbol = w.pick(("%", "//"))
        low, high = (0.0, 15.0) if symbol == "%" else (min(x.low, 0.0), x.high)
        text = f"{operand(x.text, PRODUCT)} {symbol} (({operand(y.text, AND)} & 7) + 1)"
    elif kind == 8:
        symbol = w.pick(("<<", ">>"))
        low, high = full if symbol == "<<" else (min(x.low, 0.0), x.high)
        text = f"{operand(x.text, SHIFT)} {symbol} ({operand(y.text, AND)} & 3)"
    else:
        text, (low, high) = f"jnp.where({x} > {y}, {x}, {y})", (x.low, max(x.high, y.high))
    return w.make(text, x, y, shape=shape, low=low, high=high, is_exact=True)
