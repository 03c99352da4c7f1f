"""JX429: a function traces only for one of its sizes as given."""

from __future__ import annotations

from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.inert import clause

RULE = Rule(
    __name__, "A function traces only for the given value of a named size.", severity="warning"
)

_LONGEST = 200
"""Characters of an error in a note: its sentence, without the values that some errors list."""


@RULE.explains_size
def explain(name: str, size: int, tried: tuple[int, ...], error: str) -> Violation:
    """Name the size, its value, and what fails for another one."""
    shown = clause(name, 30)
    others = ", ".join(f"`{shown}={other}`" for other in tried)
    return Violation(
        f"traces only for `{shown}={size}`: this fails for `{shown}={tried[0]}`",
        help="take the number from the shape of an argument (`x.shape[…]`)",
        notes=(
            f"with `{shown}={tried[0]}`: {clause(error, _LONGEST)}",
            f"tried {others}, all other sizes as given",
        ),
    )
