"""Templates of arithmetic, and of mathematical and special functions."""

from __future__ import annotations

import math

from jaxsight.dataset.generating.elementwise import (
    binary,
    chain,
    compare,
    complex_unary,
    tree,
)
from jaxsight.dataset.generating.ranges import calm
from jaxsight.dataset.generating.registry import template
from jaxsight.dataset.generating.steps import as_float, leave
from jaxsight.dataset.generating.types import (
    BITS,
    COMPLEX,
    INTEGERS,
    PRODUCT,
    SUM,
    UNSIGNED,
    XOR,
    Value,
    jnp_dtype,
    operand,
    power,
    real_dtype,
)
from jaxsight.dataset.generating.vocabulary import theme
from jaxsight.dataset.generating.writer import Writer


def inputs(w: Writer, dtype: str, most: int = 3, low: int = 0, high: int = 4) -> list[Value]:
    """Add some arrays whose shapes broadcast to the first one's."""
    names = theme(w, dtype in INTEGERS)
    shape = w.shape(low, high)
    values = [w.array(names[0], dtype, shape)]
    for name in names[1 : w.between(1, most)]:
        start = w.between(0, len(shape)) if w.chance(0.3) else 0
        rule = w.pick(("normal", "positive", "unit", "uniform"))
        plain = None if dtype in (*INTEGERS, "bool", *COMPLEX) else rule
        values.append(w.array(name, dtype, shape[start:], plain))
    return values


def covering(w: Writer, x: Value, values: list[Value]) -> Value:
    """Return a value that depends on all of the values."""
    for value in values:
        if not _is_used(w, value.text, x.text):
            x = w.let("combined mixed total", binary(w, w.short(x, "inner result"), value))
    return x


def _is_used(w: Writer, name: str, text: str) -> bool:
    read = [line.partition(" = ")[2] or line for line in w.lines]
    return any(_mentions(line, name) for line in [*read, text])


def _mentions(line: str, name: str) -> bool:
    start = line.find(name)
    while start >= 0:
        before, after = line[start - 1 : start], line[start + len(name) :][:1]
        if not (before.isalnum() or before in "_.") and not (after.isalnum() or after == "_"):
            return True
        start = line.find(name, start + 1)
    return False


@template("expression tree", "arithmetic", 3)
def expression(w: Writer) -> None:
    """Write an expression of some arrays of real numbers."""
    values = inputs(w, w.floating(), 4)
    terms = [
        w.let("term part factor", tree(w, values, w.between(1, 4))) for _ in range(w.between(1, 3))
    ]
    x = terms[0]
    for other in terms[1:]:
        if other.text != x.text:
            x = w.let("subtotal combined", binary(w, x, other))
    w.words.append(w.pick(("", "expression", "formula", "terms")))
    leave(w, covering(w, x, values), values, 1)


@template("polynomial", "arithmetic")
def polynomial(w: Writer) -> None:
    """Write a polynomial with given or fixed coefficients."""
    dtype = w.floating() if w.chance(0.8) else w.dtype(*COMPLEX)
    x = w.array("x t z", dtype, w.shape(0, 3), "unit" if dtype not in COMPLEX else None)
    bound = 1.0 if dtype not in COMPLEX else 2.0
    degree = w.between(2, 6)
    if dtype in COMPLEX:
        x = w.let("inner", w.make(f"{x} / (1.0 + jnp.abs({x}))", x, low=-1, high=1))
    kind = w.pick(("horner", "powers", "polyval", "sum"))
    if kind == "polyval":
        names = w.array("coefficients weights", dtype, (degree + 1,))
        value = w.make(f"jnp.polyval({names}, {x})", x, names, low=-20 * bound, high=20 * bound)
        result = w.let("value", value)
    elif kind == "horner":
        names = w.array("coefficients weights", dtype, (degree + 1,))
        total = w.name("total value result")
        w.line(f"{total} = {names}[0] * jnp.ones_like({x})")
        for index in range(1, degree + 1):
            w.line(f"{total} = {total} * {x} + {names}[{index}]")
        result = w.make(total, x, names, low=-20 * bound, high=20 * bound)
    else:
        factors = [w.pick(("0.5", "1.5", "2.0", "0.25", "3.0")) for _ in range(degree)]
        parts = [
            f"{factor} * {power(x.text, index + 2)}" for index, factor in enumerate(factors[1:])
        ]
        text = f"{factors[0]} * {x}"
        for part in parts[:3]:
            text += f" {w.pick('+-')} {part}"
        result = w.let("value", w.make(text, x, low=-12 * bound, high=12 * bound))
    w.title = f"Evaluate a polynomial of degree {degree} with {kind.replace('polyval', 'polyval')}"
    w.title = f"Evaluate a polynomial of degree {degree}"
    w.words += ["polynomial", kind]
    leave(w, result, [x], 3)


@template("integer arithmetic", "arithmetic")
def integers(w: Writer) -> None:
    """Write an expression of integers, with operators on their bits."""
    dtype = w.dtype(*INTEGERS)
    values = inputs(w, dtype, 3)
    x = w.let("mixed state_bits", tree(w, values, w.between(2, 4)))
    if w.chance(0.4):
        x = w.let("rotated", _rotated(w, x))
    if w.chance(0.25):
        x = w.let("high_bits", _logical(w, x))
    if dtype in ("int32", "uint32", "int64") and w.chance(0.8):
        text = f"lax.mulhi({x}, jnp.full_like({x}, {w.pick((715827883, 858993459, 613566757))}))"
        if dtype == "int64":
            text = text.replace("))", " << 32))")
        bound = max(2.0, x.bound / 5)
        x = w.let("quotient", w.make(text, x, low=-bound, high=bound, is_exact=True))
    w.words.append(w.pick(("", dtype)))
    for value in values:
        symbol, level = w.pick((("+", SUM), ("^", XOR), ("-", SUM)))
        text = f"{operand(x.text, level)} {symbol} {value}"
        x = w.let("hashed folded", w.make(text, x, low=-(2.0**31), high=2.0**31))
    if w.chance(0.2):
        x = w.let("scaled_values", as_float(w, x))
    leave(w, x, values, 2)


def _rotated(w: Writer, x: Value) -> Value:
    width = BITS[x.dtype]
    shift = w.between(1, _room(x, width))
    if x.dtype not in UNSIGNED:
        amount = f"jnp.full_like({x}, {shift})"
        function = w.pick(("lax.shift_right_arithmetic", "lax.shift_right_logical"))
        ends = (-(2.0 ** (width - 1)), 2.0 ** (width - 1))
        return w.make(f"{function}({x}, {amount})", x, low=ends[0], high=ends[1], is_exact=True)
    text = f"({x} << {shift}) | ({x} >> {width - shift})"
    return w.make(text, x, low=0, high=2.0**width, is_exact=True)


def _room(x: Value, width: int) -> int:
    """Return how far a value can be shifted without losing all of its bits."""
    return max(1, min(width - 2, int(math.log2(max(2.0, x.bound))) - 2))


def _logical(w: Writer, x: Value) -> Value:
    width = BITS[x.dtype]
    ends = (0.0 if x.dtype in UNSIGNED else -(2.0 ** (width - 1)), 2.0**width)
    function = w.pick(("shift_left", "shift_right_logical", "shift_right_arithmetic"))
    text = f"lax.{function}({x}, jnp.full_like({x}, {w.between(1, _room(x, width))}))"
    return w.make(text, x, low=ends[0], high=ends[1], is_exact=True)


@template("mixed types", "arithmetic")
def promotion(w: Writer) -> None:
    """Write arithmetic between arrays of several types."""
    names = theme(w)
    shape = w.shape(0, 4)
    wide = w.wide()
    x = w.array(names[0], wide, shape)
    small = w.dtype("bfloat16", "float16", "int8", "uint8", "int16", "bool", "int32", "uint16")
    y = w.array(names[1], small, shape)
    if w.chance(0.5):
        y = w.let("encoded", tree(w, [y], 1)) if small != "bool" else y
    converted = y
    if w.chance(0.6) or y.is_integer:
        converted = w.let("converted", as_float(w, y, wide))
    elif not y.is_integer:
        converted = y.within(y.low, y.high)
    symbol, level = w.pick((("*", PRODUCT), ("+", SUM)))
    left = w.short(chain(w, x, w.between(0, 2)), "left", 30)
    bound = left.bound * converted.bound + left.bound + converted.bound
    text = f"{operand(left.text, level)} {symbol} {converted.atom}"
    value = w.make(text, left, x, converted, dtype=wide, low=-bound, high=bound)
    result = w.let("product mixed", value)
    if w.chance(0.4):
        narrow = w.dtype("bfloat16", "float16", "float32")
        calmed = w.short(calm(w, result), "small")
        text = f"{calmed.atom}.astype({jnp_dtype(narrow)})"
        result = w.let("narrow", w.make(text, calmed, dtype=narrow))
    w.title += f" of {wide} and {small}"
    w.words.append("mixed_types")
    leave(w, result, [x], 3)


@template("complex arithmetic", "arithmetic", 3)
def complex_numbers(w: Writer) -> None:
    """Write an expression of complex numbers, and often its real form."""
    dtype = w.dtype(*COMPLEX)
    if dtype not in COMPLEX:
        dtype = "complex64"
    names = w.pick(("z u", "phasor carrier", "field source", "spectrum response")).split()
    shape = w.shape(0, 3)
    z = w.array(names[0], dtype, shape)
    values = [z]
    if w.chance(0.5):
        parts = [w.array(name, real_dtype(dtype), shape) for name in ("real_part", "phase")]
        kind = w.pick(("lax.complex({}, {})", "{} + 1j * {}", "{} * jnp.exp(1j * {})"))
        text = kind.format(*parts)
        values.append(w.let("wave", w.make(text, *parts, dtype=dtype, low=-4.5, high=4.5)))
    elif w.chance(0.6):
        values.append(w.array(names[1], dtype, shape))
    x = w.let("mixed", tree(w, values, w.between(1, 3)))
    if w.chance(0.5):
        x = w.let("response_values", complex_unary(w, x))
    x = covering(w, x, values)
    w.title = w.pick(("Combine complex numbers", "Compute a complex response", "Mix phasors"))
    w.words += ["complex", w.pick(("response", "mixture", "product", "field"))]
    if w.chance(0.4):
        x = w.let("size part", as_float(w, x))
    leave(w, x, values, 3)


@template("elementary functions", "math", 3)
def elementary(w: Writer) -> None:
    """Write nested elementary functions."""
    values = inputs(w, w.floating(), 3)
    x = values[0]
    for _ in range(w.between(1, 5)):
        x = chain(w, x, 1, 40)
        if len(values) > 1 and w.chance(0.4):
            x = binary(w, w.short(x, "inner", 30), w.pick(values))
        if w.chance(0.4):
            x = w.let("stage inner outer", x)
    w.words.append(w.pick(("", "curve", "response", "transform")))
    x = w.let("value", covering(w, x, values))
    leave(w, x, values, 2)


SPECIAL = (
    ("jax.scipy.special.gammainc({a}, {b})", "positive", "positive", (0, 1)),
    ("lax.igamma({a}, {b})", "positive", "positive", (0, 1)),
    ("lax.igammac({a}, {b})", "positive", "positive", (0, 1)),
    ("lax.zeta({a} + 1.5, {b})", "positive", "positive", (0, 20)),
    ("lax.polygamma(jnp.round({a}), {b})", "positive", "positive", (-40, 40)),
    ("lax.igamma_grad_a({a}, {b})", "positive", "positive", (-2, 2)),
    ("jax.scipy.special.betaln({a}, {b})", "positive", "positive", (-3, 3)),
    ("jax.scipy.special.xlogy({a}, {b})", "positive", "positive", (-2, 2)),
    ("jax.scipy.special.xlog1py({a}, {b})", "positive", "positive", (-2, 3)),
    ("jax.scipy.special.rel_entr({a}, {b})", "positive", "positive", (-2, 3)),
    ("jax.scipy.special.beta({a}, {b})", "positive", "positive", (0, 8)),
    ("jax.scipy.stats.gamma.logpdf({b}, {a})", "positive", "positive", (-6, 2)),
    ("lax.betainc({a}, {a} + 1.0, {b})", "positive", "uniform", (0, 1)),
    ("lax.betainc({a} + 0.5, {a}, {b})", "positive", "uniform", (0, 1)),
    ("lax.bessel_i0e({a}) * {b}", "normal", "normal", (-5, 5)),
    ("lax.bessel_i1e({a}) + {b}", "normal", "normal", (-5, 5)),
    ("lax.erf_inv({a}) - lax.erf({b})", "unit", "normal", (-3, 3)),
    ("jax.scipy.special.erfcx({a}) * {b}", "positive", "normal", (-3, 3)),
    ("jax.scipy.special.ndtri(0.5 + 0.5 * {a}) * {b}", "unit", "normal", (-9, 9)),
    ("jax.scipy.special.gammaln({a}) * {b}", "positive", "normal", (-3, 3)),
    ("jax.scipy.stats.norm.logpdf({b}, scale={a})", "positive", "unit", (-4, 1)),
    ("jax.scipy.stats.beta.logpdf(0.1 + 0.8 * {b}, {a}, 2.0)", "positive", "uniform", (-5, 3)),
    ("jax.scipy.stats.t.logpdf({b}, {a})", "positive", "normal", (-8, 0)),
    ("jax.scipy.stats.cauchy.logpdf({b}, scale={a})", "positive", "normal", (-6, 0)),
    ("jax.scipy.stats.laplace.logpdf({b}, scale={a})", "positive", "normal", (-12, 0)),
    ("lax.random_gamma_grad({a}, {b})", "positive", "positive", (-4, 4)),
)
GAMMAS = ("lax.igamma", "lax.zeta", "lax.polygamma", "lax.betainc({a},")


@template("special functions", "math", 3)
def special(w: Writer) -> None:
    """Write special functions of two arguments, on top of which elementary ones follow."""
    _write_special(w, w.pick(SPECIAL))


@template("gamma and zeta functions", "math", 4)
def gammas(w: Writer) -> None:
    """Write functions of the families of gamma and zeta."""
    _write_special(w, w.pick([each for each in SPECIAL if each[0].startswith(GAMMAS)]))


def _write_special(w: Writer, function: tuple[str, str, str, tuple[float, float]]) -> None:
    text, rule, other, (low, high) = function
    dtype = w.wide()
    shape = w.shape(0, 2, 16)
    names = w.pick(("shape_parameter x", "alpha x", "order argument", "rate level")).split()
    a, b = w.array(names[0], dtype, shape, rule), w.array(names[1], dtype, shape, other)
    name = text.split("(")[0].split(".")[-1]
    value = w.make(text.format(a=a, b=b), a, b, low=low, high=high)
    if any(part in name for part in ("igamma_grad_a", "random_gamma_grad", "betainc")):
        w.blocked(a, b)
    if name == "polygamma":
        value = w.make(value.text, b, low=low, high=high)
    if name == "zeta":
        w.blocked(a, b)
    x = w.let(w.pick(("density value", "ratio value", "term value")), value)
    w.title = f"Compute {name} of {names[0].replace('_', ' ')} and {names[1]}"
    w.words += [name, w.pick(("curve", "values", "terms"))]
    leave(w, x, [a, b], 5)


@template("rounding", "math")
def rounding(w: Writer) -> None:
    """Write functions with jumps, of arguments alone, combined with smooth ones."""
    values = inputs(w, w.floating(), 2)
    x = values[0]
    kind = w.pick(
        (
            ("quantize", "jnp.round({x} * 4.0) / 4.0", "Round values to quarters"),
            ("fraction", "{x} - jnp.floor({x})", "Compute fractional parts"),
            ("ceiling", "jnp.ceil({x}) - {x}", "Compute distances to the next integers"),
            ("sign", "jnp.sign({x}) * jnp.sqrt(jnp.abs({x}) + 0.1)", "Compute signed roots"),
            ("precision", "lax.reduce_precision({x}, 5, 7)", "Reduce the precision of values"),
            ("even", "lax.round({x}, lax.RoundingMethod.TO_NEAREST_EVEN)", "Round values to even"),
            ("away", "lax.round({x}, lax.RoundingMethod.AWAY_FROM_ZERO)", "Round values"),
            ("clamp", "lax.clamp(-1.5, {x}, 2.0)", "Clamp values"),
            ("finite", "jnp.where(lax.is_finite({x}), {x}, 0.0)", "Replace infinite values"),
            ("next", "lax.nextafter({x}, jnp.zeros_like({x}))", "Step towards zero"),
            ("remainder", "jnp.fmod({x}, 1.5)", "Compute remainders"),
            ("rem", "lax.rem({x}, jnp.full_like({x}, 0.75))", "Compute remainders of divisions"),
            ("modf", "jnp.modf({x})[0]", "Split off fractional parts"),
        )
    )
    if kind[0] == "clamp" and (x.rank or x.dtype != "float64"):
        kind = ("clamp", "jnp.clip({x}, -1.5, 2.0)", "Clamp values")
    smooth = kind[0] not in ("quantize", "even", "away")
    if kind[0] in ("next", "precision"):  # the derivative of a rounding is not its slope
        w.blocked(x)
    bound = 1.0 if kind[0] in ("fraction", "ceiling", "modf") else x.bound
    value = w.make(kind[1].format(x=x), x, low=-bound, high=bound, is_smooth=smooth)
    stepped = w.let("stepped rounded", value)
    rest = w.let("smooth", tree(w, [x, *values], w.between(1, 2)))
    result = w.let("value", binary(w, stepped, rest)) if rest.text != stepped.text else stepped
    w.words, w.title = [kind[0], *w.words], kind[2]
    leave(w, covering(w, result, values), values, 3)


@template("masked math", "math")
def masked(w: Writer) -> None:
    """Write functions that differ where arguments compare differently."""
    values = inputs(w, w.floating(), 3)
    condition = w.let("is_large mask condition", compare(w, values[0], w.pick(values)))
    one = w.short(tree(w, values, w.between(1, 2)), "first_branch upper", 24)
    other = w.short(chain(w, values[-1], w.between(1, 2)), "second_branch lower", 24)
    shape = values[0].shape
    low, high = min(one.low, other.low), max(one.high, other.high)
    text = f"jnp.where({condition}, {one}, {other})"
    value = w.make(text, one, other, shape=shape, low=low, high=high)
    x = w.let("selected", value)
    w.words.append("where")
    w.title += " in two regimes"
    leave(w, covering(w, x, values), values, 3)


@template("bits of floats", "math")
def bitcasts(w: Writer) -> None:
    """Write functions of the bits of floating-point numbers."""
    dtype, integer, width, digits = w.pick(
        (
            ("float32", "int32", 32, 23),
            ("float32", "uint32", 32, 23),
            ("float64", "int64", 64, 52),
            ("float16", "int16", 16, 10),
            ("bfloat16", "uint16", 16, 7),
        )
    )
    x = w.array("x values samples", dtype, w.shape(0, 3), "positive")
    spelled = jnp_dtype(integer)
    text = w.pick(("lax.bitcast_convert_type({}, {})", "{}.view({})")).format(x, spelled)
    bits = w.let("bits", w.make(text, x, dtype=integer, low=0, high=2.0 ** (width - 2)))
    kind = w.pick(("exponent", "mantissa", "mix", "round trip"))
    if kind == "exponent":
        text = f"({bits} >> {digits}) & 255"
        y = w.let("exponent", w.make(text, bits, low=0, high=255, is_exact=True))
    elif kind == "mantissa":
        text = f"{bits} & {2 ** min(digits, 14) - 1}"
        y = w.let("mantissa", w.make(text, bits, low=0, high=2.0**14, is_exact=True))
    elif kind == "mix":
        y = w.let("mixed", tree(w, [bits.within(0, 2.0**60)], 2))
    else:
        masked_bits = w.let("masked", w.make(f"{bits} ^ {w.between(1, 7)}", bits, is_exact=True))
        text = f"lax.bitcast_convert_type({masked_bits}, {jnp_dtype(dtype)})"
        y = w.make(text, masked_bits, dtype=dtype, low=0.4, high=2.1)
        y = w.let("nearby", y)
    w.title = (
        f"Inspect the {kind if kind in ('exponent', 'mantissa') else 'bits'} of {dtype} values"
    )
    w.words += [kind.replace(" ", "_"), "bits", dtype]
    if y.is_integer and w.chance(0.5):
        y = w.let("scaled", as_float(w, y, "float32"))
    leave(w, y, [], 3)
