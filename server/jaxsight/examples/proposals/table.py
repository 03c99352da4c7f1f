"""The ordered table of evidence: the first row whose condition holds decides what a parameter is.

The uses in the body come first, then the annotation, the docstring, and the name. Constructor
arguments, fields and the items of tuples are decided by the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from jaxsight.examples.proposals.clues import Clues
from jaxsight.examples.proposals.kinds import PLAIN, Kind, What

# What the names of parameters suggest: the patterns that the rows of `table` match.

KEY = re.compile(r"(?:.*_)?(?:key|rng|prng|rng_key|prng_key)")
RNGS = re.compile(r"rngs")
"""The random number streams of flax.nnx."""
QUERY = re.compile(r"q|query|queries|v|value|values")
"""Parameters beside which `key` is an array."""
SCALAR = re.compile(
    r"(?:\w+_)?(?:rate|lr|scale|alpha|beta|gamma|lambda|lambd|lam|lmbda|lambda_|decay|eps|epsilon|"
    r"temperature|temp|momentum|threshold|delta|tol|rtol|atol|rcond|coefficient|coef|factor|radius|"
    r"clip|norm|noise|std|sigma|tau|eta|nu|rho|omega|lower|upper|strength|"
    r"multiplier|step_size|weight_decay|margin|prob|probability|power|ratio|offset|smoothing|"
    r"cutoff)|(?:min|max)_\w+|b1|b2|dt|dt0|t|t0|t1|time|a_min|a_max|limit"
)


Row = tuple[Callable[[Clues], object], Kind | What | Callable[[Clues], What]]


def kind_of(clues: Clues) -> What:
    """Return what a parameter is."""
    for holds, kind in ROWS:
        if holds(clues):
            if isinstance(kind, Kind):
                return What(kind)
            return kind if isinstance(kind, What) else kind(clues)
    return What(Kind.ARRAY)


def _annotated(clues: Clues) -> What:
    return clues.annotated


_SAID = PLAIN | {Kind.DTYPE, Kind.KEY}
"""Annotations that names do not change."""

ROWS: tuple[Row, ...] = (
    # An attention's key is an array.
    (
        lambda c: (
            c.name in ("key", "keys")
            and not c.is_argument
            and any(map(QUERY.fullmatch, c.siblings))
        ),
        Kind.ARRAY,
    ),
    (lambda c: c.is_argument and c.named(RNGS), Kind.RNGS),
    (lambda c: c.is_unneeded, Kind.NONE),
    # Uses in the body.
    (lambda c: c.is_annotated(Kind.OBJECT) and c.uses.called, _annotated),
    (lambda c: c.uses.called, Kind.OTHER),
    (
        lambda c: c.uses.choices and not c.uses.array,
        lambda c: What(Kind.LITERAL, c.uses.choices[0]),
    ),
    (lambda c: c.uses.random and not c.is_annotated(Kind.INTEGER), Kind.KEY),
    (lambda c: c.uses.dtype and not c.uses.array, Kind.DTYPE),
    (lambda c: c.uses.shape_like and c.is_annotated(Kind.INTEGER), Kind.INTEGER),
    (lambda c: c.uses.shape_like and not c.uses.array, Kind.OTHER),
    (lambda c: c.uses.keys and not c.uses.shape.find().least, Kind.DICT),
    (lambda c: c.uses.axis and not c.has_axes, Kind.AXIS),
    (lambda c: c.uses.static and not c.has_axes, Kind.INTEGER),
    # The annotation, and the docstring.
    (lambda c: c.annotated.kind in _SAID, _annotated),
    (lambda c: c.said.count and not c.has_axes, Kind.INTEGER),
    # Names and tests, where the body does not use the parameter as an array.
    (lambda c: c.named(KEY) and not c.uses.array and not c.uses.number, Kind.KEY),
    (lambda c: c.uses.tested and not c.uses.array and not c.uses.number, Kind.FLAG),
    (lambda c: c.static, Kind.OTHER),
    # Objects.
    (lambda c: c.is_annotated(Kind.OBJECT) and (not c.uses.array or c.is_class), _annotated),
    # Arrays.
    (lambda c: c.has_rank, Kind.ARRAY),
    (lambda c: c.is_annotated(Kind.SCALAR, Kind.OTHER), _annotated),
    (lambda c: c.said.scalar, Kind.SCALAR),
    # At most one use as an array, seen in both passes of `inference`.
    (lambda c: c.named(SCALAR) and not c.has_axes and c.uses.array <= 2, Kind.SCALAR),
)
