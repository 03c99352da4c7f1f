"""What JAX's primitives have in common: classes of their names, for whoever reads programs.

A name that no version of JAX has any more does no harm; one that is missing makes a rule silent.
"""

from __future__ import annotations

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
ROUNDINGS = frozenset({"floor", "ceil", "round", "sign"})
"""Functions of numbers whose derivative is 0 wherever they have one."""
COPIES = frozenset(
    {"convert_element_type", "copy", "copy_p", "stop_gradient", "reduce_precision"}
)  # fmt: skip
"""Primitives whose result is their operand, up to rounding."""
ELEMENTWISE = (
    COMPARISONS
    | ROUNDINGS
    | COPIES
    | {
        "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2", "atanh",
        "cbrt", "clamp", "complex", "conj", "cos", "cosh", "digamma", "div", "erf", "erf_inv",
        "erfc", "exp", "exp2", "expm1", "imag", "integer_pow", "is_finite", "lgamma", "log",
        "log1p", "log2", "logistic", "max", "min", "mul", "neg", "nextafter", "not", "or", "pow",
        "real", "rem", "rsqrt", "select_n", "shift_left", "shift_right_arithmetic",
        "shift_right_logical", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh", "xor",
    }
)  # fmt: skip
"""Primitives that compute each element of their result from one of each operand."""

RESHAPES = frozenset({"reshape", "squeeze", "expand_dims"})
"""Primitives whose result has the elements of their operand in the same order."""
SHAPED = RESHAPES | {"broadcast_in_dim", "transpose", "rev", "slice", "stack", "unstack", "split"}
"""Primitives that only move elements; some of them repeat or drop elements."""
MOVES = SHAPED | COPIES
"""Primitives whose result has the elements of their operand, up to rounding."""
PICKS = frozenset({"gather", "dynamic_slice"})
"""Primitives that take some elements of their first operand."""
FUSED = ELEMENTWISE | MOVES | {"iota", "concatenate", "pad"}
"""Primitives that XLA computes inside of the kernels that read their results (`gpu_fusible.cc`)."""

REDUCTIONS = frozenset(
    {
        "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or",
        "argmax", "argmin",
    }
)  # fmt: skip
CUMULATIVE = frozenset({"cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"})
SCATTERS = frozenset(
    {"scatter", "scatter-add", "scatter-sub", "scatter-mul", "scatter-min", "scatter-max"}
)  # fmt: skip

LOOPS = frozenset({"scan", "while"})
JITS = frozenset({"jit", "pjit"})
"""Calls of functions that `jax.jit` compiles, since JAX 0.7 and before."""
INLINED = frozenset(
    {
        "jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call",
        "custom_vjp_call_jaxpr",
    }
)  # fmt: skip
"""Calls that XLA inlines (`CallInliner`), except those of checkpoints, which have a barrier."""
