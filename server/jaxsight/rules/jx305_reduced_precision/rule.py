"""JX305: a float32 product that the target computes in TF32 or bfloat16 unless told otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading, parameter
from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX305",
    "reduced-precision",
    "A float32 product is computed with less precision.",
    severity="hint",
    on=False,
)

_PRODUCTS = ("dot_general", "conv_general_dilated")
_TF32 = frozenset(
    {
        "a100",
        "h100",
        "h200",
        "b200",
        "b300",
        "gb200",
        "l4",
        "l40s",
        "rtx4090",
        "rtx3090",
        "a10",
        "rtx5090",
        "a6000",
    }
)
"""Chips of compute capability 8.0 and later, where cuBLAS may use TF32."""


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each product of float32 arrays at default precision."""
    if reading.target is None:
        return
    if reading.target.platform == "tpu":
        format = "bfloat16"
    elif reading.target.short in _TF32:
        format = "TF32"
    else:
        return
    for step in reading.flow.steps.values():
        if step.primitive not in _PRODUCTS or parameter(step, "precision") not in (None, "None"):
            continue
        if parameter(step, "preferred_element_type") not in (None, "float32"):
            continue
        if all(reading.flow.value(number).dtype == "float32" for number in step.operands[:2]):
            yield Noticed(
                f"{reading.quoted(step.path)} may be computed in {format} on {reading.target.short}, with about 3 decimal digits: give "
                "`precision=jax.lax.Precision.HIGHEST` where float32 is meant.",
                step.path,
            )
