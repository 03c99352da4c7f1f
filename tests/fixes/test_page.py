"""The page on fixes says which there are."""

from __future__ import annotations

import re
from pathlib import Path

from jaxsight.engine.fixes.registry import FIXES


def test_the_page_names_the_codes_that_have_fixes() -> None:
    page = Path(__file__).parents[2].joinpath("docs", "fixes.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\[(JX\d+)\]\(diagnostics", page)) == set(FIXES)
