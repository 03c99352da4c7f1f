"""JX429: a function traces only for one of its sizes as given."""

from __future__ import annotations

from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.text.inert import clause

RULE = Rule(
    "JX429",
    "fixed-size",
    "A function traces only for the given value of a named size.",
    severity="warning",
)

_LONGEST = 200


def violation(name: str, size: int, tried: tuple[int, ...], error: str) -> Violation:
    """Return the violation about a size.

    Args:
        name: the size.
        size: its given value.
        tried: values that the function failed with.
        error: the message of the failure with the first of them.
    """
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
