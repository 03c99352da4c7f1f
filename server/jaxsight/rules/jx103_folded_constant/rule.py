"""JX103: what XLA folded lies in the executable and in device memory."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from jaxsight.rules.jx101_captured_constant.rule import captured
from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import MIB, size

RULE = Rule(
    "JX103",
    "folded-constant",
    "A folded constant lies in the executable.",
    severity="warning",
)
LARGE = MIB


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Find folded constants of a mebibyte or more in the optimized program.

    A captured array that XLA stores as it is, in another layout or another shape, is JX101's.
    """
    if reading.compiled is None:
        return
    known = {_kind(value.text) for value, _ in captured(reading)}
    took = reading.compiled.seconds
    for constant in reading.compiled.graph.constants:
        if not constant.folded or constant.value.bytes < LARGE:
            continue
        if _kind(constant.value.text) in known:
            continue
        at = next((path for path in constant.equations if path in reading.flow.steps), "")
        what = f"{reading.quoted(at)} was folded into" if at else "XLA made"
        yield Noticed(
            f"{what} a constant of {size(constant.value.bytes)} ({constant.value.text}) that lies in the executable "
            f"and in device memory (compiled in {took:.1f} s). Compute it from `jnp.arange` or `jax.lax.iota` where it is used "
            "(`jnp.where(i == k, …)`), or make it an argument.",
            at,
        )


def _kind(text: str) -> tuple[str, int]:
    """Return the dtype and the number of elements of `f32[4,8]`, in JAX's words or HLO's."""
    dtype, _, shape = text.partition("[")
    axes = shape.rstrip("]").split(",")
    dtype = "bool" if dtype == "pred" else re.sub(r"^s(?=\d)", "i", dtype)
    return dtype, math.prod(int(axis) for axis in axes if axis)
