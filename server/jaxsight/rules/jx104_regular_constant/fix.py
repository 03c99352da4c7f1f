"""Fix JX104 like JX101: generate the captured array where it is used."""

from __future__ import annotations

from jaxsight.rules.fixing.constants import generated_or_passed
from jaxsight.rules.fixing.remedy import Remedy

REMEDY = Remedy("as for JX101", generated_or_passed, timed=True)
