"""`jaxsight explain`: the pages of rules in a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jaxsight.rules import RULES
from tests.terminal import jaxsight


@pytest.mark.parametrize("name", ["jx405", "JX405", "nan"])
def test_a_rule_is_explained_by_its_page(tmp_path: Path, name: str) -> None:
    done = jaxsight("explain", name, cwd=tmp_path)
    assert done.returncode == 0
    assert "nan (JX405)" in done.stdout
    assert "Severity: warning · has a fix" in done.stdout
    assert "safe = jnp.where(x > 0, x, 1.0)" in done.stdout


def test_all_rules_are_listed(tmp_path: Path) -> None:
    done = jaxsight("explain", "--json", cwd=tmp_path)
    assert [row["code"] for row in json.loads(done.stdout)] == list(RULES)
    assert "JX208" in jaxsight("explain", cwd=tmp_path).stdout


def test_an_unknown_rule_is_reported(tmp_path: Path) -> None:
    done = jaxsight("explain", "JX999", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown rule or operation JX999; did you mean JX9" in done.stderr


def test_primitives_and_operations_are_explained_with_their_links(tmp_path: Path) -> None:
    done = jaxsight("explain", "stablehlo.dot_general", cwd=tmp_path)
    assert done.stdout.startswith(
        "stablehlo.dot_general (stablehlo): sums products over contracted axes"
    )
    assert "\n  https://openxla.org/stablehlo/spec#dot_general\n" in done.stdout
    done = jaxsight("explain", "dot_general", "--json", cwd=tmp_path)
    rows = json.loads(done.stdout)
    assert [(row["name"], row["language"]) for row in rows] == [
        ("dot_general", "jaxpr"),
        ("stablehlo.dot_general", "stablehlo"),
    ]


def test_a_misspelled_operation_has_similar_ones(tmp_path: Path) -> None:
    done = jaxsight("explain", "dot_genral", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown rule or operation dot_genral; did you mean dot_general, " in done.stderr
