"""`jaxsight explain`: the pages of codes in a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from jaxsight.findings.catalogue import CODES
from tests.cli.test_commands import jaxsight


def test_a_code_is_explained_by_its_page(tmp_path: Path) -> None:
    done = jaxsight("explain", "jx405", cwd=tmp_path)
    assert done.returncode == 0
    assert "JX405: nan" in done.stdout
    assert "safe = jnp.where(x > 0, x, 1.0)" in done.stdout


def test_all_codes_are_listed(tmp_path: Path) -> None:
    done = jaxsight("explain", "--json", cwd=tmp_path)
    assert [row["code"] for row in json.loads(done.stdout)] == list(CODES)
    assert "JX208" in jaxsight("explain", cwd=tmp_path).stdout


def test_a_code_that_there_is_not_is_told(tmp_path: Path) -> None:
    done = jaxsight("explain", "JX999", cwd=tmp_path)
    assert done.returncode == 2
    assert "there is no code JX999" in done.stderr
