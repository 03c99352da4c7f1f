"""JX304: a 64-bit type was requested, and JAX used the 32-bit one, or a number does not fit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx304_truncated_to_32_bit.constants import lost
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.source.text import Edit

RULE = Rule(
    "JX304",
    "truncated-to-32-bit",
    "64-bit type, or a number that the narrower type in use does not have.",
    severity="warning",
    without_inputs=True,
)

_TRUNCATED = re.compile(
    r"dtype (?P<requested>\w+)\b.*?truncated to (?:dtype )?(?P<used>\w+)",
    re.DOTALL,
)


_LIMITS = {
    "float16": ("6e-8", "65,504"),
    "bfloat16": ("9e-41", "3.4e38"),
    "float32": ("1.4e-45", "3.4e38"),
    "float64": ("4.9e-324", "1.8e308"),
}
"""The least positive and the greatest number of each type (`jnp.finfo`)."""


@dataclass(frozen=True, slots=True)
class Truncated:
    """The dtypes of a truncated request."""

    requested: str
    """`float64`."""
    used: str
    """`float32`."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield a finding for each warning of JAX that says so, and for each number that is lost."""
    for warned in view.warnings:
        match = _TRUNCATED.search(warned.message)
        if match is not None:
            requested, used = match["requested"], match["used"]
            yield Violation(
                f"requested `{requested}`, got `{used}`: 64-bit types are disabled",
                help=f"use `{used}`, or enable 64-bit types with "
                '`jax.config.update("jax_enable_x64", True)`',
                data=Truncated(requested, used),
                span=warned.span,
            )
    reported: set[object] = set()
    for step in view.flow.forward_steps():
        for text, dtype, held in lost(view, step):
            if (step.span, text) not in reported:
                reported.add((step.span, text))
                least, most = _LIMITS[dtype]
                near = "tiny" if held == 0 else "max" if held > 0 else "min"
                is_scale = held == 0 and step.primitive in ("mul", "div")
                yield Violation(
                    f"{quoted(text)} is {held:g} in {dtype}",
                    step.path,
                    help="change the units so that the numbers fit, or use a wider type"
                    if is_scale
                    else f"use a number that {dtype} has, as `jnp.finfo(jnp.{dtype}).{near}`, "
                    "or a wider type",
                    notes=(
                        f"{dtype} has no positive number below {least}"
                        if held == 0
                        else f"{dtype} has no finite number above {most}",
                    ),
                )


# The fix: write the 32-bit type that JAX uses in place of the 64-bit one.


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield the expression with the 32-bit type wherever the 64-bit one is named."""
    types = context.finding.data
    if not isinstance(types, Truncated):
        return
    edits: list[Edit] = []
    for node in context.find(ast.expr):
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name) if name == types.requested:
                text = context.text(node)
                edits.append(context.replace(node, text.removesuffix(name) + types.used))
            case ast.Constant(value=str(name)) if name == types.requested:
                edits.append(context.replace(node, context.text(node).replace(name, types.used)))
    if edits:
        yield Candidate(f"Use `{types.used}`", tuple(edits))


REMEDY = Remedy(
    "the 32-bit type",
    candidates,
)
