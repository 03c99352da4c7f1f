"""Looking at code changes nothing outside: each effect at each place, in each way to look."""

from __future__ import annotations

import sys
from functools import cache

import pytest

from tests.searches import part
from tests.tracer.isolation.effects.forms import FORMS, Form
from tests.tracer.isolation.effects.looking import Looked, looked_at

pytestmark = [
    pytest.mark.search,
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="elsewhere, only calls of Python are refused"
    ),
]


CASES = part(FORMS)
TOGETHER = 30
"""Forms in a project: each has a process, sockets and other open files."""


@cache
def looked(project: int) -> dict[Form, Looked]:
    return looked_at(CASES[project * TOGETHER : (project + 1) * TOGETHER])


@pytest.mark.parametrize("form", CASES, ids=str)
def test_looking_changes_nothing(form: Form) -> None:
    found = looked(CASES.index(form) // TOGETHER)[form]
    assert found.changes == []
    assert found.is_real, "it changes nothing when it is run, either"
    assert found.runs, "its statement is not run"
    assert "= mul " in found.shown
