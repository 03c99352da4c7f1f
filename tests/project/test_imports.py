"""Imports are read off texts, wherever they are."""

from __future__ import annotations

import pytest

from tools.imports import imports_of


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b, c", {"a", "a.b"}),
        ("from a.b import c", {"a.b"}),
        ("from . import b", {"a.b"}),
        ("from .b import c", {"a.b"}),
        ("from .. import z", set()),
        ("import z, a.me", set()),
        ("if TYPE_CHECKING:\n    from a.b import c", {"a.b"}),
        ("def f():\n    import a.b", {"a.b"}),
    ],
)
def test_imports_are_found_wherever_they_are(text: str, imported: set[str]) -> None:
    assert imports_of("a.me", text, {"a", "a.b", "a.me"}) == imported
