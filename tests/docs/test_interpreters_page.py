"""The page on interpreters: its examples run, and its tables have every rule and every domain."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import jax  # noqa: F401 - the rules need it
import pytest

from jaxsight_source import inverse_registry
from jaxsight_source.inversion import (
    inverses,
    transform,  # noqa: F401 - imports all rules
)

PAGE = Path(__file__).parents[2] / "docs" / "source" / "interpreters.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_examples_give_what_they_show(capsys: pytest.CaptureFixture[str]) -> None:
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    failed, attempted = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    inverse_registry.clear()
    assert failed == 0, capsys.readouterr().out
    assert attempted > 10


def test_every_rule_is_in_the_table() -> None:
    named = set(re.findall(r"`(\w+)`", TEXT[TEXT.index("### Supported operations") :]))
    assert inverses.names() <= named
