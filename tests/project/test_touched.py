"""Which tests a change touches."""

from __future__ import annotations

import pytest

from tests.touched import by

FOLDERS = ("e2e", "interpreters", "rules", "source", "sourcerizer", "tracer", "features")


@pytest.mark.parametrize(
    ("changed", "path", "quick", "slow"),
    [
        ("server/jaxsight/rules/rule.py", "tests/rules/test_rules.py", True, True),
        ("server/jaxsight/rules/rule.py", "tests/features/fixes/test_fixes.py", True, False),
        ("server/jaxsight/rules/rule.py", "tests/e2e/test_hover.py", True, False),
        ("server/jaxsight/rules/rule.py", "tests/sourcerizer/test_same.py", False, False),
        ("server/jaxsight/lru.py", "tests/source/test_module.py", True, False),
        # The server starts tracers by the name of their module.
        ("server/jaxsight/sourcerizer/source.py", "tests/features/test_cells.py", True, False),
        ("tests/rules/test_rules.py", "tests/rules/test_rules.py", True, True),
        ("tests/rules/test_rules.py", "tests/rules/test_cases.py", False, False),
        ("tests/rules/specimens.py", "tests/rules/test_cases.py", True, True),
        ("tests/corpora/rules/errors/silent/append.py", "tests/rules/test_cases.py", True, True),
        ("tools/precision/mutants.py", "tests/precision/test_conditions.py", True, True),
        ("docs/rules.md", "tests/docs/test_pages.py", True, True),
        ("docs/rules.md", "tests/e2e/test_hover.py", False, False),
        ("requirements/test.in", "tests/sourcerizer/test_same.py", True, True),
    ],
)
def test_a_change_touches(changed: str, path: str, quick: bool, slow: bool) -> None:
    touched = by([changed], FOLDERS)
    assert touched.holds(path, is_slow=False) is quick
    assert touched.holds(path, is_slow=True) is slow
