"""JX304: a 64-bit type was requested, and JAX used the 32-bit one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation

RULE = Rule(
    "JX304",
    "truncated-to-32-bit",
    "64-bit type requested while 64-bit types are disabled.",
    severity="warning",
    without_inputs=True,
)

_TRUNCATED = re.compile(
    r"dtype (?P<requested>\w+)\b.*?truncated to (?:dtype )?(?P<used>\w+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Truncated:
    """The dtypes of a truncated request."""

    requested: str
    """`float64`."""
    used: str
    """`float32`."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield a finding for each warning of JAX that says so."""
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
