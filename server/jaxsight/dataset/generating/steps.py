"""Random steps of programs: what holes such as `mapped(x)` and `more(x)` of templates become.

The functions of real numbers are spelled so that their results are defined and of moderate size
wherever their arguments are: no step has to know the range of a value. Those with jumps are applied
to arguments only, as rounding moves a computed value across a jump.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from jaxsight.dataset.generating.choices import COMPLEX, FLOATS, INTEGERS, WIDE, Choices


@dataclass(frozen=True, slots=True)
class Value:
    """An expression and its type.

    Attributes:
        text: the expression.
        dtype: as NumPy names it.
        rank: the number of its dimensions.
        is_given: whether it is an argument, or has the same bits eagerly and compiled.
    """

    text: str
    dtype: str
    rank: int
    is_given: bool = False

    def __str__(self) -> str:
        return self.text if self.text.isidentifier() else f"({self.text})"


SMOOTH = {
    "jnp.tanh({x})": "bounded",
    "jnp.sin(0.5 * {x})": "wave",
    "jnp.cos(0.5 * {x})": "wave",
    "jnp.exp(jnp.tanh({x}))": "growth",
    "jnp.exp(-jnp.abs({x}))": "decay",
    "jnp.expm1(jnp.tanh({x}))": "growth",
    "jnp.exp2(-jnp.abs({x}))": "powers",
    "jnp.log(jnp.abs({x}) + 0.5)": "logs",
    "jnp.log1p(jnp.abs({x}))": "logs",
    "jnp.log2(1.5 + jnp.abs({x}))": "octaves",
    "jnp.log10({x} ** 2 + 1.0)": "decades",
    "jnp.sqrt(jnp.abs({x}) + 0.1)": "roots",
    "jnp.sqrt(1.0 + jax.nn.softplus({x}))": "roots",
    "lax.rsqrt(jnp.abs({x}) + 0.3)": "inverse_roots",
    "jnp.cbrt(jnp.abs({x}) + 0.1)": "cube_roots",
    "jnp.square(jnp.tanh({x}))": "squares",
    "jnp.tanh({x}) ** 3": "cubes",
    "{x} / (1.0 + jnp.abs({x}))": "softened",
    "jax.nn.sigmoid({x})": "gate",
    "jax.nn.softplus({x})": "rates",
    "jax.nn.relu({x}) + 0.1 * {x}": "rectified",
    "jax.nn.gelu({x})": "activated",
    "jax.nn.silu({x})": "activated",
    "jax.nn.elu({x})": "activated",
    "jax.nn.leaky_relu({x})": "activated",
    "jax.nn.log_sigmoid({x})": "log_probabilities",
    "jax.nn.soft_sign({x})": "softened",
    "0.3 * {x} + jax.nn.relu6({x})": "activated",
    "jax.nn.selu({x})": "activated",
    "jax.nn.mish({x})": "activated",
    "0.2 * {x} - jax.nn.hard_tanh({x})": "clipped",
    "jnp.arctan({x})": "angle",
    "jnp.arcsin(0.9 * jnp.tanh({x}))": "angle",
    "jnp.arccos(0.9 * jnp.sin({x}))": "angle",
    "jnp.sinh(jnp.tanh({x}))": "hyperbolic",
    "jnp.cosh(jnp.sin({x}))": "hyperbolic",
    "jnp.tan(jnp.tanh({x}))": "slope",
    "jnp.arcsinh({x})": "compressed",
    "jnp.arccosh(jnp.abs({x}) + 1.2)": "distance",
    "jnp.arctanh(0.9 * jnp.tanh({x}))": "rapidity",
    "jnp.reciprocal(jnp.abs({x}) + 0.5)": "inverse",
    "1.0 / (1.0 + {x} ** 2)": "inverse",
    "jnp.sinc({x} / 4.0)": "kernel_values",
    "lax.erf({x})": "errors",
    "lax.erfc(jnp.tanh({x}))": "tails",
    "lax.erf_inv(0.8 * jnp.tanh({x}))": "quantiles",
    "lax.logistic({x})": "gate",
    "jnp.nan_to_num({x})": "cleaned",
    "jnp.deg2rad({x})": "radians",
    "jax.nn.sigmoid({x}) * {x}": "gated",
    "0.5 * {x}": "scaled",
    "{x} + 1.0": "shifted",
    "{x} - 0.25": "shifted",
    "{x} / 3.0": "scaled",
    "2.0 - 0.5 * {x}": "reflected",
    "1.5 * {x}": "scaled",
}
"""Functions of real numbers, and names for their results."""

SPECIAL = {
    "lax.lgamma(jnp.abs({x}) + 0.5)": "log_gamma",
    "lax.digamma(jnp.abs({x}) + 0.5)": "digammas",
    "jax.scipy.special.i0e({x})": "bessel",
    "jax.scipy.special.i1e({x})": "bessel",
    "jax.scipy.special.logit(0.1 + 0.8 * jax.nn.sigmoid({x}))": "logits",
    "jax.scipy.special.entr(jnp.abs({x}) + 0.1)": "entropies",
    "jax.scipy.stats.norm.cdf({x})": "cumulative",
    "jax.scipy.stats.norm.logpdf(jnp.tanh({x}))": "log_density",
}
"""Those of `float32` and `float64` only."""

JUMPING = {
    "jnp.floor({x})": "floored",
    "jnp.ceil({x})": "raised",
    "jnp.round({x})": "rounded",
    "jnp.trunc({x})": "whole",
    "lax.reduce_precision({x}, 8, 7)": "coarse",
    "jnp.sign({x}) * jnp.sqrt(jnp.abs({x}) + 0.1)": "signed_roots",
    "lax.stop_gradient({x})": "frozen",
    "jnp.remainder({x}, 1.5)": "remainders",
    "jnp.where({x} > 0.5, {x}, 0.2 * {x})": "bent",
}
"""Those that jump, or whose derivative is another than their slope."""

COMPLEX_FUNCTIONS = {
    "jnp.conj({x})": "conjugate",
    "{x} / (jnp.abs({x}) + 0.5)": "phasors",
    "{x} / (1.0 + jnp.abs({x}))": "softened",
    "jnp.tanh({x} / (4.0 + jnp.abs({x})))": "bounded",
    "jnp.sin({x} / (2.0 + jnp.abs({x})))": "wave",
    "jnp.cos({x} / (2.0 + jnp.abs({x})))": "wave",
    "jnp.exp({x} / (1.0 + jnp.abs({x})))": "growth",
    "jnp.sqrt({x} + 8.0)": "roots",
    "lax.complex(jnp.imag({x}), jnp.real({x}))": "swapped",
    "{x} * (0.5 + 0.5j)": "turned",
    "jnp.log(jnp.abs({x}) + 1.0) * {x}": "weighted",
    "{x} + 0.5j": "shifted",
}

INTEGER_FUNCTIONS = {
    "{x} & {mask}": "masked",
    "{x} ^ {mask}": "toggled",
    "{x} | {mask}": "flagged",
    "{x} << {k}": "shifted",
    "{x} >> {k}": "halved",
    "~{x}": "inverted",
    "lax.population_count({x})": "bit_counts",
    "jnp.bitwise_count({x}).astype({x}.dtype)": "bit_counts",
    "lax.clz({x})": "leading_zeros",
    "{x} * {k}": "multiples",
    "{x} + {k}": "moved_on",
    "{x} % {m}": "residues",
    "{x} // {m}": "quotients",
    "jnp.minimum({x}, {mask})": "capped",
    "jnp.maximum({x}, {mask})": "raised",
    "jnp.clip({x}, 5, 60)": "clipped",
    "{x} ** 2": "squares",
    "jnp.where({x} > {m}, {x}, {k})": "replaced",
    "jnp.abs({x} - {m})": "distances",
    "jnp.sign({x}) * {k}": "signs",
}

SUMS = {
    "{x} + {y}": "total",
    "{x} - {y}": "difference",
    "{x} * jnp.tanh({y})": "modulated",
    "0.5 * ({x} + {y})": "average",
    "{x} / (1.0 + jnp.abs({y}))": "ratio",
    "{x} / (1.0 + {y} ** 2)": "ratio",
    "{x} * jax.nn.sigmoid({y})": "gated",
    "jnp.maximum({x}, {y})": "larger",
    "jnp.minimum({x}, {y})": "smaller",
    "jnp.logaddexp({x}, {y})": "soft_maximum",
    "jnp.arctan2({x}, jnp.abs({y}) + 0.5)": "angle",
    "jnp.sqrt({x} ** 2 + {y} ** 2 + 1.0)": "radius",
    "jnp.power(jax.nn.sigmoid({x}) + 0.5, jnp.tanh({y}))": "powers",
    "jnp.hypot(jnp.tanh({x}) + 3.0, {y})": "distance",
    "jnp.exp(-jnp.abs({x} - {y}))": "similarity",
}
"""Functions of two real numbers that are defined everywhere."""

GIVEN_PAIRS = {
    "{x} * {y}": "product",
    "jnp.copysign({x}, {y})": "signed",
    "jnp.where({x} > {y}, {x}, 0.5 * {y})": "chosen",
    "jnp.heaviside({x}, 0.5) * {y}": "gated",
    "jnp.remainder({x}, jnp.abs({y}) + 0.5)": "remainders",
}
"""Functions of two arguments."""

SAME_SHAPE = {
    "lax.rem({x}, lax.max(lax.abs({y}), lax.full_like({y}, 0.5)))": "remainders",
    "lax.nextafter({x}, {y})": "next_values",
    "lax.pow(lax.logistic({x}), lax.tanh({y}))": "powers",
}
"""Functions of two arguments of one shape."""

INTEGER_PAIRS = {
    "{x} + {y}": "total",
    "{x} - {y}": "difference",
    "{x} * {y}": "product",
    "{x} & {y}": "common",
    "{x} | {y}": "union",
    "{x} ^ {y}": "hashed",
    "jnp.maximum({x}, {y})": "larger",
    "jnp.minimum({x}, {y})": "smaller",
    "{x} % (({y} & 7) + 1)": "residues",
    "{x} // (({y} & 7) + 1)": "quotients",
    "{x} << ({y} & 3)": "shifted",
    "{x} >> ({y} & 3)": "halved",
    "jnp.where({x} > {y}, {x}, {y})": "chosen",
}

COMPLEX_PAIRS = {
    "{x} + {y}": "total",
    "{x} - {y}": "difference",
    "{x} * {y} / (1.0 + jnp.abs({y}))": "product",
    "{x} / (1.0 + jnp.abs({y}))": "ratio",
    "{x} + 0.5 * jnp.conj({y})": "blended",
}

_PARTS = ("jnp.abs({x})", "jnp.real({x})", "jnp.imag({x})", "jnp.real({x}) + jnp.imag({x})")
NUMBERS = {
    "complex64": _PARTS,
    "complex128": _PARTS,
    "integer": ("({x} % 61).astype({d}) / 8.0", "({x} & 15).astype({d})"),
    "bool": ("{x}.astype({d})", "jnp.where({x}, 1.0, -0.5).astype({d})"),
    "float": (*("{x}.astype({d})", "lax.convert_element_type({x}, {d})", "jnp.asarray({x}, {d})"),),
}
"""Moderate floating-point numbers of values of other dtypes."""

COMPARISONS = ("{x} > {y}", "{x} < {y}", "{x} >= {y}", "{x} <= {y}")
TESTS = ("{x} > 0.3", "{x} < 0.5", "{x} >= 0.0", "{x} <= 0.2", "jnp.abs({x}) < 1.0")
INTEGER_TESTS = ("{x} > {m}", "{x} % {m} == 0", "{x} % 2 != 1", "({x} & 3) == 1", "{x} <= {m}")

REDUCTIONS = {
    "jnp.mean({x}{a})": "average",
    "jnp.sum({x}{a}) / 8.0": "total",
    "jnp.max({x}{a})": "largest",
    "jnp.min({x}{a})": "smallest",
    "jnp.var({x}{a})": "variance",
    "jnp.mean({x} ** 2{a})": "energy",
    "jnp.sqrt(jnp.mean({x} ** 2{a}) + 1e-3)": "rms",
    "jnp.mean(jnp.abs({x}){a})": "size",
    "jax.nn.logsumexp({x}{a})": "log_total",
    "jnp.sqrt(jnp.var({x}{a}) + 1e-2)": "deviation",
    "jnp.ptp({x}{a})": "spread",
    "jnp.prod(1.0 + 0.1 * jnp.tanh({x}){a})": "growth",
    "jnp.median({x}.astype(jnp.float32){a})": "median",
}

MOVES = {
    "jnp.flip({x}, axis={axis})": "reversed_values",
    "jnp.roll({x}, {k}, axis={axis})": "shifted",
    "{x}[..., ::2]": "strided",
    "{x}[::-1]": "flipped",
    "jnp.pad({x}, {widths})": "padded",
    'jnp.pad({x}, {widths}, mode="edge")': "padded",
    "jnp.repeat({x}, 2, axis={axis})": "repeated",
    "jnp.concatenate([{x}, {x}[::-1]], axis={axis})": "mirrored",
}
RANK_MOVES = {
    "jnp.transpose({x}, {order})": "transposed",
    "jnp.swapaxes({x}, 0, -1)": "swapped",
    "{x}.T": "transposed",
    "jnp.moveaxis({x}, 0, -1)": "turned",
}
"""Moves of values with two dimensions or more."""

CUMULATIVE = {
    "jnp.cumsum({x}, axis={axis}) / 4.0": "running_total",
    "lax.cummax({x}, axis={axis})": "running_max",
    "lax.cummin({x}, axis={axis})": "running_min",
    "jnp.sort({x}, axis={axis})": "ordered",
    "{x} - jnp.roll({x}, 1, axis={axis})": "changes",
    "lax.cumlogsumexp({x}, axis={axis})": "running_log",
    "jnp.cumprod(1.0 + 0.1 * jnp.tanh({x}), axis={axis})": "running_product",
}

NORMAL_FORMS = {
    "{x} * jax.nn.softmax({x}, {a})": "attended",
    "jnp.square(jax.nn.softmax({x}, {a}))": "sharpened",
    "jax.nn.log_softmax({x}, {a})": "log_probabilities",
    "jnp.tanh({x} - jnp.mean({x}, {a}, keepdims=True))": "centered",
    "{x} / (jnp.max(jnp.abs({x}), {a}, keepdims=True) + 1e-1)": "normalized",
    "{x} * lax.rsqrt(jnp.mean({x} ** 2, {a}, keepdims=True) + 1e-1)": "normalized",
    "jnp.sin({x} / (jnp.std({x}, {a}, keepdims=True) + 0.5))": "standardized",
}

PLAIN = {
    "jnp.tanh({x})": "bounded",
    "jnp.sin({x})": "wave",
    "jnp.cos({x})": "wave",
    "0.5 * {x}": "scaled",
    "{x} + 1.0": "shifted",
    "jnp.exp(-jnp.abs({x}))": "decay",
    "jnp.log1p(jnp.abs({x}))": "logs",
    "jnp.maximum({x}, 0.0)": "rectified",
    "jax.nn.sigmoid({x})": "gate",
    "jnp.arctan({x})": "angle",
}
"""Functions in which no rule finds anything."""

LONGEST = 36
"""An expression of more letters is assigned to a name before it is used in another one."""


class Steps:
    """Writes random steps.

    Attributes:
        choices: where they come from.
        let: assigns an expression to a new name like a given one, and returns that name.
    """

    def __init__(self, choices: Choices, let: Callable[[str, str], str]) -> None:
        self.choices = choices
        self.let = let

    def named(self, x: Value, base: str = "inner") -> Value:
        """Return a value as a name."""
        return x if x.text.isidentifier() else replace(x, text=self.let(base, x.text))

    def short(self, x: Value, base: str = "inner") -> Value:
        """Return a value whose expression is short."""
        return x if len(x.text) <= LONGEST else self.named(x, base)

    def applied(
        self, table: Mapping[str, str], x: Value, y: Value | None = None, **holes: object
    ) -> Value:
        """Return one of the functions of a table, of one or two values."""
        pattern, name = self.choices.pick(list(table.items()))
        x = self.named(x) if pattern.count("{x}") > 1 or "{x}." in pattern else self.short(x)
        if y is not None:
            y = self.named(y) if pattern.count("{y}") > 1 else self.short(y)
        small = {"k": self.choices.between(2, 4), "m": self.choices.between(3, 9)}
        mask = self.choices.choose(3, 7, 15, 31, 63)
        text = pattern.format(x=x, y=y, mask=mask, **small, **holes)
        both = y is None or y.is_given
        result = Value(text, x.dtype, max(x.rank, y.rank if y else 0), x.is_given and both)
        if x.dtype in FLOATS:
            result = replace(result, is_given=False)
        return self.short(result, name)

    def unary(self, x: Value, is_smooth: bool = False) -> Value:
        """Return a function of the elements of a value, of the same dtype."""
        if x.dtype in COMPLEX:
            return self.applied(COMPLEX_FUNCTIONS, x)
        if x.dtype == "bool":
            return replace(x, text=f"~{x}")
        if x.dtype in INTEGERS:
            return self.applied(INTEGER_FUNCTIONS, x)
        table = SMOOTH | (SPECIAL if x.dtype in WIDE else {})
        if x.is_given and not is_smooth and self.choices.chance(0.2):
            table = JUMPING
        return self.applied(table, x)

    def binary(self, x: Value, y: Value, is_smooth: bool = False) -> Value:
        """Return a function of two values of one dtype; their shapes broadcast."""
        if x.text == y.text:
            return self.unary(x, is_smooth)
        if x.dtype == "bool":
            return self.applied(
                dict.fromkeys(("{x} & {y}", "{x} | {y}", "{x} ^ {y}"), "both"), x, y
            )
        if x.dtype in INTEGERS:
            return self.applied(INTEGER_PAIRS, x, y)
        if x.dtype in COMPLEX:
            return self.applied(COMPLEX_PAIRS, x, y)
        if x.is_given and y.is_given and not is_smooth and self.choices.chance(0.4):
            return self.applied(GIVEN_PAIRS, x, y)
        return self.applied(SUMS, x, y)

    def mapped(self, x: Value, most: int = 2) -> Value:
        """Return up to so many functions of a value, one at least."""
        for _ in range(self.choices.between(1, most)):
            x = self.unary(x)
        return x

    def mixed(self, *values: Value, is_smooth: bool = False, depth: int = 0) -> Value:
        """Return an expression that depends on each of some values."""
        x = self._tree(values, depth or self.choices.between(1, 3), is_smooth)
        for value in values:
            if x.dtype in FLOATS:
                extra = self.choices.choose("jnp.sin({})", "0.5 * {}", "{}", "jnp.tanh({})")
                x = replace(x, text=f"{self.short(x)} + {extra.format(value)}", is_given=False)
            else:
                x = self.binary(x, value)
            x = replace(self.short(x), rank=max(x.rank, value.rank))
        return x

    def smooth(self, *values: Value) -> Value:
        """Return an expression with a derivative everywhere that depends on each of some values."""
        return self.mixed(*values, is_smooth=True)

    def _tree(self, values: tuple[Value, ...], depth: int, is_smooth: bool) -> Value:
        if depth <= 0 or (depth == 1 and self.choices.chance(0.2)):
            return self.choices.pick(values)
        if self.choices.chance(0.5):
            return self.unary(self._tree(values, depth - 1, is_smooth), is_smooth)
        one, other = (self._tree(values, depth - 1, is_smooth) for _ in range(2))
        return self.binary(one, other, is_smooth)

    def prepared(self, x: Value) -> Value:
        """Return a value, or one of the same shape made from it."""
        if self.choices.chance(0.4):
            return x
        if x.rank and x.dtype != "bool" and self.choices.chance(0.4):
            axis = self.axis(x)
            if x.dtype in FLOATS and self.choices.chance(0.5):
                return self.applied(NORMAL_FORMS, x, a=f"axis={axis}")
            turns = ("jnp.flip({x}, axis={axis})", "jnp.roll({x}, {k}, axis={axis})")
            return self.applied(dict.fromkeys(turns, "turned"), x, axis=axis)
        return self.unary(x)

    def settled(self, x: Value) -> Value:
        """Return a value after up to two plain steps."""
        for _ in range(self.choices.between(0, 2)):
            pattern, name = self.choices.pick(list(PLAIN.items()))
            x = replace(x, text=self.let(name, pattern.format(x=x)), is_given=False)
        return x

    def axis(self, x: Value) -> int:
        """Return one of the axes of a value."""
        return self.choices.between(0, max(0, x.rank - 1))

    def reduced(self, x: Value, axis: int | None = None) -> Value:
        """Return a reduction over an axis, or over all of them."""
        a = "" if axis is None else f", axis={axis}"
        rank = 0 if axis is None else max(0, x.rank - 1)
        result = x.dtype
        if x.dtype == "bool":
            pattern, result = self.choices.choose(
                ("jnp.sum({x}{a})", "int64"),
                ("jnp.any({x}{a})", "bool"),
                ("jnp.all({x}{a})", "bool"),
            )
        elif x.dtype in INTEGERS:
            pattern = self.choices.choose(
                "jnp.sum({x}{a}, dtype={x}.dtype)", "jnp.max({x}{a})", "jnp.min({x}{a})",
                "jnp.prod({x}{a}, dtype={x}.dtype)",
            )  # fmt: skip
        elif x.dtype in COMPLEX:
            pattern = "jnp.mean({x}{a})"
        else:
            tables = [each for each in REDUCTIONS if x.dtype in WIDE or "median" not in each]
            pattern = self.choices.pick(tables)
            result = "float32" if "median" in pattern else result
        name = REDUCTIONS.get(pattern, "folded")
        made = self.applied({pattern: name}, x, a=a)
        return replace(made, rank=rank, dtype=result)

    def moved(self, x: Value) -> Value:
        """Return a value with its elements moved."""
        if not x.rank:
            return self.unary(x)
        axis, order = self.axis(x), self.choices.sample(range(x.rank), x.rank)
        table = {**MOVES, "{x}[..., None]": "column"} if x.rank < 5 else MOVES
        if x.rank > 1:
            table = table | RANK_MOVES | {"{x}.reshape(-1)": "flat"}
        widths = [(0, 0)] * x.rank
        widths[axis] = (self.choices.between(0, 2), self.choices.between(1, 2))
        pattern, name = self.choices.pick(list(table.items()))
        made = self.applied(
            {pattern: name}, self.named(x), axis=axis, order=tuple(order), widths=tuple(widths)
        )
        rank = {"flat": 1, "column": x.rank + 1}.get(name, x.rank)
        return replace(made, rank=rank, is_given=x.is_given)

    def scanned(self, x: Value) -> Value:
        """Return a cumulative function or a sorted form of real numbers."""
        return self.applied(CUMULATIVE, x, axis=self.axis(x)) if x.rank else self.unary(x)

    def normalised(self, x: Value) -> Value:
        """Return real numbers normalised along an axis."""
        if not x.rank:
            return self.unary(x)
        return self.applied(NORMAL_FORMS, x, a=f"axis={self.axis(x)}")

    def compared(self, x: Value, y: Value | None = None) -> Value:
        """Return a comparison of values that are given."""
        tests = INTEGER_TESTS if x.dtype in INTEGERS else TESTS
        patterns: tuple[str, ...] = tests if y is None else COMPARISONS
        made = self.applied(dict.fromkeys(patterns, "mask"), x, y)
        return replace(made, dtype="bool", is_given=x.is_given)

    def number(self, x: Value, dtype: str) -> Value:
        """Return a value as moderate floating-point numbers."""
        kind = "integer" if x.dtype in INTEGERS else x.dtype
        pattern = self.choices.pick(NUMBERS.get(kind, NUMBERS["float"]))
        made = self.applied({pattern: "numbers"}, x, d=f"jnp.{dtype}")
        if x.dtype in COMPLEX:
            dtype = {"complex64": "float32", "complex128": "float64"}[x.dtype]
        return replace(made, dtype=dtype, is_given=False)

    def step(self, x: Value) -> Value:
        """Return a value after one random step of any kind."""
        kind = self.choices.random.random()
        if x.dtype not in FLOATS:
            if x.rank and kind < 0.15:
                return self.reduced(x, self.axis(x))
            if x.rank and kind < 0.4:
                return self.moved(x)
            if kind < 0.5 and x.dtype in INTEGERS:
                return self.compared(x)
            if kind < 0.7 and x.dtype in (*COMPLEX, "bool"):
                return self.number(x, "float32")
            return self.unary(x)
        if not x.rank or kind < 0.4:
            return self.unary(x)
        if kind < 0.6:
            return self.reduced(x, None if self.choices.chance(0.3) else self.axis(x))
        if kind < 0.72:
            return self.normalised(x)
        return self.moved(x) if kind < 0.9 else self.scanned(x)

    def more(self, x: Value, *others: Value, most: int = 4) -> list[Value]:
        """Return what a function returns: a value after up to so many random steps, or two."""
        x = self.named(x, "result")
        for other in others:
            if other.dtype == x.dtype and self.choices.chance(0.3):
                x = self.named(self.binary(x, other), "combined")
        for _ in range(self.choices.between(0, most)):
            x = self.named(self.step(x), "stage")
        if x.dtype in FLOATS and x.rank and self.choices.chance(0.1):
            return [x, self.named(self.reduced(x), "summary")]
        return [x]
