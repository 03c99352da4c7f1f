"""Fix JX104 like JX101: generate the captured array where it is used."""

from __future__ import annotations

from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx101_captured_constant.fix import candidates

REMEDY = Remedy("as for JX101", candidates, timed=True)
