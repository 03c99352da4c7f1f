"""Fix JX101: generate a captured array where it is used, or pass it as an argument."""

from __future__ import annotations

from jaxsight.rules.fixing.constants import generated_or_passed
from jaxsight.rules.fixing.remedy import Remedy

REMEDY = Remedy(
    "`jnp` instead of `np`; an equal expression such as `jnp.arange(…)`; an argument (unsafe)",
    generated_or_passed,
    timed=True,
)
