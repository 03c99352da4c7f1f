"""The integers of a program, with what the checks of this rule ask about them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.intervals.inference import Intervals
from jaxsight.rules.program.intervals.interval import limits
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.wording import quoted
from jaxsight.wire.primitives import ELEMENTWISE, MOVES, PICKS, SHAPED
from jaxsight.wire.program import Step

SIGNED = "convert to a signed type first: `.astype(jnp.int32)`"
"""The help for unsigned integers that fall below zero."""
_MOVES = MOVES | PICKS | {"concatenate", "pad"}
_NEAR = 20
"""Moves from an argument that are looked through: what took more counts as computed."""


@dataclass(frozen=True, slots=True)
class Integers:
    """The integers of a program: their ranges, and the text that computes them."""

    view: ProgramView
    flow: Flow
    intervals: Intervals

    def is_of_integers(self, step: Step) -> bool:
        """Whether an equation computes integers."""
        return bool(step.results) and bits_of(self.dtype(step)) > 1

    def limits(self, step: Step) -> tuple[int, int]:
        """Return the least and the greatest integer of what an equation computes."""
        within = limits(self.dtype(step))
        assert within is not None
        return within

    def dtype(self, step: Step) -> str:
        """Return the dtype of what an equation computes."""
        return self.flow.value(step.results[0]).dtype

    def is_small(self, step: Step) -> bool:
        """Whether a sum of few elements overflows."""
        # Only `jnp.sum` and `jnp.prod` add more bits (`_promote_integer_dtype` in reductions.py).
        return bits_of(self.dtype(step)) <= 16

    def quoted(self, step: Step) -> str:
        """Return the user's expression at an equation in backticks, shortened."""
        return quoted(self.view.quote(step.path), "this")

    def one(self, number: int) -> int | None:
        """Return the integer that all elements of a value are, where that is known."""
        interval = self.intervals.of(number)
        return interval.one if interval is not None else None

    def is_any(self, number: int) -> bool:
        """Whether a value may be any integer of its dtype, as arguments are."""
        interval, within = self.intervals.of(number), limits(self.flow.value(number).dtype)
        return interval is not None and (interval.least, interval.most) == within

    def is_input(self, number: int) -> bool:
        """Return whether a value is an argument, an element of one, or a converted one.

        Other values may be computed such that they are less or greater than others.
        """
        for _ in range(_NEAR):
            step = self.flow.producer(number)
            if step is None:
                return self.is_any(number)
            if step.primitive not in _MOVES:
                return False
            if limits(self.flow.value(step.operands[0]).dtype) is None:
                return True
            number = step.operands[0]
        return False


def bits_of(dtype: str) -> int:
    """Return the bits of an integer dtype, 1 of booleans, 0 of others."""
    within = limits(dtype)
    return 0 if within is None else (within[1] - within[0]).bit_length()


def figure(number: int) -> str:
    """Return a number as people read it: `1,048,576`, `2.4e18`."""
    if abs(number) < 10**15:
        return f"{number:,}"
    digits = str(abs(number))
    return f"{'-' if number < 0 else ''}{digits[0]}.{digits[1]}e{len(digits) - 1}"


def holds_note(dtype: str) -> str:
    """Return the note on the integers that a dtype holds."""
    within = limits(dtype)
    assert within is not None
    return f"{dtype} holds {within[0]:,} to {within[1]:,}; JAX wraps around silently"


def wider_help(dtype: str) -> str:
    """Return the help for integers that need more bits."""
    if bits_of(dtype) < 32:
        return "convert to a wider dtype first: `.astype(jnp.int32)`"
    return (
        "compute in floating point, or enable 64-bit types with "
        '`jax.config.update("jax_enable_x64", True)`'
    )


# Tell code that wraps around on purpose: hashes, random numbers, bit masks.

_BITS = frozenset(
    {"and", "or", "xor", "not", "shift_left", "shift_right_logical", "shift_right_arithmetic",
     "population_count", "bitcast_convert_type", "clz", "random_bits", "threefry2x32"}
)  # fmt: skip

_MIXES = re.compile(
    r"hash|crc|checksum|digest|prng|rng|random|lcg|xorshift|seed|fnv|murmur|adler|fletcher|parity|"
    r"scramble|modular|modulo|wrap|overflow",
    re.IGNORECASE,
)
"""Names of code that wraps on purpose."""

_BEFORE, _AFTER = 6, 30
"""Equations before and after that are looked at, a choice: fewer report a hash whose bits are mixed
a few lines later, more hide an overflow beside one."""

_HASH = 1 << 16
"""Odd factors from here on are those of hashes and random generators, a choice: multipliers of
hashes are about as large as a word (16777619 of FNV-1), strides are not."""


def is_meant(integers: Integers, step: Step) -> bool:
    """Whether code wraps on purpose: it mixes bits, or is called so."""
    names = [integers.view.name]
    for node in integers.view.around(step.path):
        match node:
            case ast.FunctionDef(name=name) | ast.AugAssign(target=ast.Name(id=name)):
                names.append(name)
            case ast.Assign(targets=targets):
                names += (target.id for target in targets if isinstance(target, ast.Name))
    if any(map(_MIXES.search, names)):
        return True
    through = (ELEMENTWISE | SHAPED) - {"select_n"}
    bits = _BITS - {"shift_left"} if step.primitive == "shift_left" else _BITS
    unsigned = integers.dtype(step).startswith("uint")
    flow, near = integers.flow, [step]
    for number in step.results:
        near += [user for _, user in flow.forwards(number, through, _AFTER)]
    for number in step.operands:
        near += flow.backwards(number, through, _BEFORE)

    def is_hash(number: int) -> bool:
        single = integers.one(number)
        return single is not None and abs(single) >= _HASH and single % 2 == 1

    return any(
        (nearby.primitive in bits and bits_of(flow.value(nearby.results[0]).dtype) > 1)
        or (nearby.primitive == "rem" and unsigned)
        or (nearby.primitive == "mul" and any(map(is_hash, nearby.operands)))
        for nearby in near
    )
