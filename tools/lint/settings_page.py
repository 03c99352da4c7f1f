"""`docs/settings.md` is what the schema of the settings gives."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.settings.documentation import page
from tools.lint.checkout import Checkout, Offender

PAGE = "docs/settings.md"


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield the first line that differs."""
    shown, made = checkout.text(PAGE).split("\n"), page().split("\n")
    if shown != made:
        same = 0
        while shown[same : same + 1] == made[same : same + 1]:
            same += 1
        message = f"differs; update it with `python -m jaxsight.settings.documentation > {PAGE}`"
        yield Offender(PAGE, same + 1, message)
