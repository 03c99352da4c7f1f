"""JX302: a static argument must be hashable, because JAX looks up compiled functions by it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import call_operands
from jaxsight.rules.wording import quoted

RULE = Rule(__name__, "Unhashable value passed as a static argument.")
_TYPE = re.compile(r"object of type <class '([^']+)'>")
_OBJECT = (
    "make it hashable: `@dataclass(frozen=True)`, or `eq=False` to compare by identity; make a "
    "class that holds arrays a pytree, and do not make it static"
)
_OTHERS = {
    "list": "pass a tuple, or do not make the argument static",
    "dict": "pass a frozen dataclass or a tuple of items, or do not make the argument static",
    "set": "pass a `frozenset` or a sorted tuple, or do not make the argument static",
    "object": "pass a tuple or a frozen dataclass, or do not make the argument static",
}
"""What to do, by the class of the argument."""


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize JAX's `ValueError` by its first words."""
    if not error.message.startswith("Non-hashable static arguments are not supported"):
        return None
    match = _TYPE.search(error.message)
    type = match[1].rpartition(".")[2] if match is not None else "object"
    subject, help = f"an unhashable {quoted(type)}", _OTHERS.get(type, _OBJECT)
    if type in ("ndarray", "ArrayImpl") or type.endswith("Tracer"):
        subject, help = "an array", "do not make it static: arrays are traced"
    return Violation(
        f"static argument is {subject}",
        help=help,
        notes=("JAX looks up compiled functions by the hash of their static arguments",),
    )


# The fix: replace a list among static arguments by a tuple.


@RULE.fixes("a tuple instead of a list (unsafe)")
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the call with tuples in place of the lists among its arguments."""
    for call in context.find(ast.Call):
        lists = [argument for argument in call_operands(call) if isinstance(argument, ast.List)]
        if lists:
            yield Candidate(
                "Pass a tuple instead of the list",
                tuple(context.replace(list_, _tuple(context, list_)) for list_ in lists),
                same=False,
            )
            return


def _tuple(context: FixContext, node: ast.List) -> str:
    inside = context.text(node)[1:-1]
    comma = "," if len(node.elts) == 1 and not inside.rstrip().endswith(",") else ""
    return f"({inside}{comma})"
