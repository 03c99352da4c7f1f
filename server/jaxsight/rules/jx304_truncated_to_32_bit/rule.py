"""JX304: a 64-bit type was asked for, and JAX gave the 32-bit one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX304",
    "truncated-to-32-bit",
    "A 64-bit type is asked for and not given.",
    severity="warning",
)

_TRUNCATED = re.compile(
    r"dtype (?P<asked>\w+)\b.*?truncated to (?:dtype )?(?P<given>\w+)",
    re.DOTALL,
)


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Each of JAX's warnings that says so."""
    for warned in reading.warnings:
        found = _TRUNCATED.search(warned.message)
        if found is not None:
            yield Noticed(
                f"`{found['asked']}` is asked for, but `{found['given']}` is what you get, because 64-bit types are switched off. Say "
                f'`{found["given"]}`, or switch them on with `jax.config.update("jax_enable_x64", True)`.',
                span=warned.span,
            )
