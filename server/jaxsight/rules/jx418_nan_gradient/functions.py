"""The functions without a derivative somewhere, as users write them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.text.expressions import name_of, parsed

WRITTEN: dict[str, frozenset[str]] = {
    "sqrt": frozenset(
        {"sqrt", "norm", "vector_norm", "std", "nanstd", "pow", "power", "float_power"}
    ),
    "rsqrt": frozenset({"rsqrt"}),
    "pow": frozenset({"norm", "vector_norm", "pow", "power", "float_power"}),
    "cbrt": frozenset({"cbrt"}),
    "acos": frozenset({"acos", "arccos"}),
    "asin": frozenset({"asin", "arcsin"}),
    "acosh": frozenset({"acosh", "arccosh"}),
    "atan2": frozenset({"atan2", "arctan2"}),
}
"""By primitive the functions that users write it with."""


def passed_functions(call: ast.Call) -> Iterator[str]:
    """Yield the names of functions that are passed on: `norm` of `jax.grad(jnp.linalg.norm)(x)`."""
    for node in ast.walk(call):
        if isinstance(node, ast.Call):
            for argument in node.args:
                if isinstance(argument, ast.Attribute):
                    yield argument.attr


def is_written(text: str, primitive: str) -> bool:
    """Whether an expression is itself a call or a power that the primitive is written with."""
    node = parsed(text)
    if isinstance(node, ast.Call):
        return not WRITTEN[primitive].isdisjoint({name_of(node), *passed_functions(node)})
    power = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow)
    return power and primitive in ("sqrt", "pow")
