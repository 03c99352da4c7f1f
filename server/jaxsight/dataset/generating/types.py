"""Types of generated values: dtypes, shapes and ranges, and the precedence of expressions."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

FLOATS = ("float32", "float64", "bfloat16", "float16")
WIDE = ("float32", "float64")
SIGNED = ("int32", "int64", "int16", "int8")
UNSIGNED = ("uint32", "uint8", "uint16")
INTEGERS = (*SIGNED, *UNSIGNED)
COMPLEX = ("complex64", "complex128")
BITS = {
    "int8": 8,
    "int16": 16,
    "int32": 32,
    "int64": 64,
    "uint8": 8,
    "uint16": 16,
    "uint32": 32,
    "uint64": 64,
}
SHORT = {
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "float16": "f16",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "bool",
    "complex64": "c64",
    "complex128": "c128",
    "key": "key<fry>",
}
"""Dtypes as jaxprs print them."""

ATOM, POWER, NEGATION, PRODUCT, SUM, SHIFT, AND, XOR, OR, COMPARISON = range(100, 0, -10)
_OPERATORS = (
    (r" (?:[<>]=?|[=!]=) ", COMPARISON),
    (r" \| ", OR),
    (r" \^ ", XOR),
    (r" & ", AND),
    (r" (?:<<|>>) ", SHIFT),
    (r" [+-] ", SUM),
    (r" (?:[*/%@]|//) ", PRODUCT),
    (r"^[-~]", NEGATION),
    (r"\*\*", POWER),
)
_PRECEDENCES = [(re.compile(pattern), level) for pattern, level in _OPERATORS]
_SIMPLE = re.compile(r"[\w.]+")


def precedence(text: str) -> int:
    """Return how tightly the outermost operator of an expression binds."""
    if _SIMPLE.fullmatch(text):
        return ATOM
    depth, outer = 0, []
    for letter in text:
        depth -= letter in ")]}"
        if not depth:
            outer.append(letter)
        depth += letter in "([{"
    flat = "".join(outer)
    return next((level for pattern, level in _PRECEDENCES if pattern.search(flat)), ATOM)


def operand(text: str, level: int) -> str:
    """Return an expression with parentheses if it binds less tightly than `level`."""
    return text if precedence(text) >= level else f"({text})"


def power(base: str, exponent: str | int) -> str:
    """Return a power, spaced as ruff does."""
    base = operand(base, ATOM)
    return f"{base}**{exponent}" if _SIMPLE.fullmatch(base) else f"{base} ** {exponent}"


@dataclass(frozen=True, slots=True)
class Value:
    """An expression and its type.

    Attributes:
        text: the expression.
        dtype: as NumPy names it.
        shape: the sizes of its dimensions.
        low: what elements are hardly ever below.
        high: what they are hardly ever above.
        is_smooth: whether it has a derivative with respect to inexact arguments.
        is_exact: whether it has the same bits eagerly and compiled, so that comparing it is safe.
        is_level: whether its sums are constant, as those of a softmax are.
    """

    text: str
    dtype: str
    shape: tuple[int, ...]
    low: float = -4.5
    high: float = 4.5
    is_smooth: bool = False
    is_exact: bool = False
    is_level: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def atom(self) -> str:
        """The expression, to be followed by a dot or a bracket."""
        return operand(self.text, ATOM)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bound(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_float(self) -> bool:
        """Whether it is real and inexact."""
        return self.dtype in FLOATS

    @property
    def is_wide(self) -> bool:
        """Whether linear algebra and special functions accept it."""
        return self.dtype in WIDE

    @property
    def is_integer(self) -> bool:
        """Whether it consists of integers."""
        return self.dtype in BITS

    def within(self, low: float, high: float) -> Value:
        """Return it with another range."""
        return replace(self, low=low, high=high)

    def named(self, text: str) -> Value:
        """Return it as another expression."""
        return replace(self, text=text)


def jnp_dtype(dtype: str) -> str:
    """Return how programs spell a dtype."""
    return "jnp.bool_" if dtype == "bool" else f"jnp.{dtype}"


def real_dtype(dtype: str) -> str:
    """Return the dtype of the parts of a complex number; of others, the dtype itself."""
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def complex_dtype(dtype: str) -> str:
    """Return the dtype of complex numbers with parts of a dtype."""
    return {"float32": "complex64", "float64": "complex128"}.get(dtype, dtype)


def without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Return a shape without an axis."""
    axis %= len(shape)
    return shape[:axis] + shape[axis + 1 :]


def sized(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    """Return a shape with another size of an axis."""
    axis %= len(shape)
    return (*shape[:axis], size, *shape[axis + 1 :])


def broadcast(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a function of two values."""
    rank = max(len(x), len(y))
    pairs = zip((1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y, strict=True)
    return tuple(max(one, other) for one, other in pairs)


def infix(x: Value, symbol: str, y: Value, level: int) -> str:
    """Return two expressions with an operator of a precedence between them."""
    return f"{operand(x.text, level)} {symbol} {operand(y.text, level + 1)}"
