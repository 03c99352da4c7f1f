"""JX305: a float32 product that the target computes in TF32 or bfloat16 by default."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation

RULE = Rule(
    __name__, "Float32 product may be computed with reduced precision.", severity="hint", on=False
)

_PRODUCTS = ("dot_general", "conv_general_dilated")
_TF32 = frozenset(
    {
        "a10", "a100", "a6000", "b200", "b300", "gb200", "h100", "h200", "l4", "l40s", "rtx3090",
        "rtx4090", "rtx5090",
    }
)  # fmt: skip
"""Chips of compute capability 8.0 and later, where cuBLAS may use TF32."""
_PRECISION = {
    "TF32": "TF32 keeps 10 bits of the mantissa, about 3 decimal digits",
    "bfloat16": "bfloat16 keeps 7 bits of the mantissa, about 2 decimal digits",
}


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the products of float32 arrays at default precision."""
    if view.target is None:
        return
    if view.target.platform == "tpu":
        format = "bfloat16"
    elif view.target.chip is not None and view.target.chip.name in _TF32:
        format = "TF32"
    else:
        return
    for step in view.flow.steps.values():
        if step.primitive not in _PRODUCTS or step.parameter("precision") not in (None, "None"):
            continue
        if step.parameter("preferred_element_type") not in (None, "float32"):
            continue
        if all(view.flow.value(number).dtype == "float32" for number in step.operands[:2]):
            target = view.target.short
            yield Violation(
                f"float32 product may be computed in {format} on {target}",
                step.path,
                help="pass `precision=jax.lax.Precision.HIGHEST` where you need float32 precision",
                notes=(_PRECISION[format],),
            )
