"""`jaxsight explain`: the pages of codes in a terminal."""

from __future__ import annotations

import json

from jaxsight.findings.catalogue import CODES
from tests.cli.test_commands import jaxsight


def test_a_code_is_explained_by_its_page() -> None:
    done = jaxsight("explain", "jx405")
    assert done.returncode == 0
    assert "JX405: nan" in done.stdout
    assert "safe = jnp.where(x > 0, x, 1.0)" in done.stdout


def test_all_codes_are_listed() -> None:
    done = jaxsight("explain", "--json")
    assert [row["code"] for row in json.loads(done.stdout)] == list(CODES)
    assert "JX208" in jaxsight("explain").stdout


def test_a_code_that_there_is_not_is_told() -> None:
    done = jaxsight("explain", "JX999")
    assert done.returncode == 2
    assert "there is no code JX999" in done.stderr
