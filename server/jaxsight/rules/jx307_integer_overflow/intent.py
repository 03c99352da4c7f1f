"""Tell code that wraps around on purpose: hashes, random numbers, bit masks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from jaxsight.rules.jx307_integer_overflow.integers import Integers, bits_of
from jaxsight.wire.primitives import ELEMENTWISE, SHAPED
from jaxsight.wire.program import Step

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

_NEAR, _BELOW = 6, 30
"""Equations before and after that are looked at, a choice: fewer report a hash whose bits are mixed
a few lines later, more hide an overflow beside one."""

_HASH = 1 << 16
"""Odd factors from here on are those of hashes and random generators, a choice: multipliers of
hashes are about as large as a word (16777619 of FNV-1), strides are not."""


def is_meant(integers: Integers, step: Step) -> bool:
    """Whether code wraps on purpose: it mixes bits, or is called so."""
    names = [integers.view.name, *_names(integers.view.around(step.path))]
    if any(map(_MIXES.search, names)):
        return True
    if step.primitive == "and":
        return False
    through = (ELEMENTWISE | SHAPED) - {"select_n"}
    bits = _BITS - {"shift_left"} if step.primitive == "shift_left" else _BITS
    unsigned = integers.dtype(step).startswith("uint")
    near = [step]
    for number in step.results:
        near += [user for _, user in integers.flow.forwards(number, through, _BELOW)]
    for number in step.operands:
        near += integers.flow.backwards(number, through, _NEAR)
    return any(
        (nearby.primitive in bits and bits_of(integers.flow.value(nearby.results[0]).dtype) > 1)
        or (nearby.primitive == "rem" and unsigned)
        or (
            nearby.primitive == "mul"
            and any(_is_hash(integers, number) for number in nearby.operands)
        )
        for nearby in near
    )


def _is_hash(integers: Integers, number: int) -> bool:
    interval = integers.intervals.of(number)
    single = interval.one if interval is not None else None
    return single is not None and abs(single) >= _HASH and single % 2 == 1


def _names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))
