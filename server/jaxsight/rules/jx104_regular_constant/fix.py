"""JX104: the captured array is made where it is used."""

from __future__ import annotations

from jaxsight.engine.fixes.remedy import Remedy
from jaxsight.rules.jx101_captured_constant.fix import candidates

REMEDY = Remedy("as for JX101", candidates, timed=True)
