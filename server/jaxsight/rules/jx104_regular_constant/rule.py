"""JX104: a captured array has regular values, and could be generated where it is used."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

from jaxsight.rules.fixing.constants import LARGE, CapturedArray, generated_or_passed
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import parsed
from jaxsight.text.units import KIB, size
from jaxsight.wire.primitives import FUSED
from jaxsight.wire.program import CONSTANT

RULE = Rule(
    __name__, "Captured array could be generated instead.", severity="information", once_a_line=True
)
LEAST = KIB
"""Bytes from which an array is reported, a choice: lower reports the indices of a few axes."""
_SHOWN = 75
"""Characters of the expression that a message quotes, whose other words take 25."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Find captured arrays that `jnp.arange`, `jnp.full` and the like generate.

    Larger ones are reported by JX101. Nothing is reported where a statement that may fill the
    array was not executed. Indices that `x[::2]`, `jnp.tril_indices` or a convolution computes in
    NumPy are JAX's own.
    """
    flow = view.flow
    if not view.exact:
        return
    for number, value in enumerate(flow.values):
        if value.origin != CONSTANT or not value.said or not LEAST <= value.bytes < LARGE:
            continue
        users = flow.used_by(number)
        is_used = flow.of(number) == number and users and not _selects(flow, number)
        if not is_used or not view.quote(users[0].path) or not _is_written(view, users[0].path):
            continue
        shown = textwrap.shorten(value.said, _SHOWN, placeholder="…")
        yield Violation(
            f"captured array equals `{shown}`",
            users[0].path,
            help="generate it inside the function, so that XLA fuses it with the code that uses it",
            notes=(f"{value.text} ({size(value.bytes)}) is embedded in the executable",),
            data=CapturedArray(value.text, value.said),
        )


def _selects(flow: Flow, number: int) -> bool:
    """Whether a value ends up as indices of a read or a write."""
    return any(
        user.primitive.startswith(("gather", "scatter", "dynamic_"))
        and value in map(flow.of, user.operands[1:2])
        for value, user in flow.forwards(number, FUSED)
    )


def _is_written(view: ProgramView, path: str) -> bool:
    """Whether the user's expression names the array, with a name that is not an argument.

    Arguments of all functions around it count: `batch` in `lambda w: batch @ w`.
    """
    expression = parsed(view.quote(path))
    if not isinstance(expression, ast.expr):
        return True  # a statement, such as `x *= TABLE`
    nodes = (node for function in view.functions(path) for node in ast.walk(function.args))
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return bool(names - own - {"jnp", "jax", "lax"})


# Fix JX104 like JX101: generate the captured array where it is used.

RULE.fixes("as for JX101", timed=True)(generated_or_passed)
