"""The pages of rules tell the truth: their first example gives the finding, the second does not."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

import jax
import pytest

from jaxsight import rules
from jaxsight.rules import RULES
from jaxsight.rules.rule import Rule
from jaxsight.settings.reading import parse_project
from tests.rules.test_cases import NEWEST
from tests.searches import part
from tests.terminal import jaxsight, sessions

__all__ = ["sessions"]

ROOT = Path(__file__).parents[2]


def page(rule: Rule) -> str:
    return rules.file_of(rule).read_text(encoding="utf-8")


def examples(rule: Rule, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page(rule), re.MULTILINE | re.DOTALL)


LOCKED = frozenset({"JX502"})
"""Rules that compare with a lock."""

CHECKED = part([code for code in RULES if code not in LOCKED and examples(RULES[code], "python")])
"""The rules whose examples this run checks."""


def settings_of(rule: Rule) -> str:
    """What the examples are checked with: rules that are off are selected, the target is the
    page's.
    """
    target = "cpu" if "target `cpu`" in page(rule) else "cuda:h100"
    select = "" if rule.on else f"select = [{json.dumps(rule.name)}]\n"
    return f'[tool.jaxsight]\npython = {json.dumps(sys.executable)}\ntarget = "{target}"\n{select}'


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.skipif(jax.__version_info__[:2] != NEWEST, reason="the pages are about JAX 0.12")
@pytest.mark.search
@pytest.mark.parametrize("group", sorted({code[:4] for code in CHECKED}))
def test_examples_in_python_give_their_finding_and_fixes_give_none(
    group: str, tmp_path: Path
) -> None:
    expected = set()
    for code in CHECKED:
        if code.startswith(group):
            rule = RULES[code]
            bad, good = examples(rule, "python")
            folder = tmp_path / ("on" if rule.on else code)
            folder.mkdir(exist_ok=True)
            (folder / "pyproject.toml").write_text(settings_of(rule))
            (folder / f"{code}_bad.py").write_text(bad)
            (folder / f"{code}_good.py").write_text(good)
            expected.add(code)
    done = jaxsight("check", "--output-format", "json", cwd=tmp_path)
    # Information, such as of JX207, is no failure.
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, set[str]] = defaultdict(set)
    for one in json.loads(done.stdout):
        if one["code"] != "examined":
            found[Path(one["filename"]).stem].add(one["code"])
    assert {code for code in expected if code not in found[f"{code}_bad"]} == set()
    assert {code: found[f"{code}_good"] for code in expected if found[f"{code}_good"]} == {}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
def test_the_example_of_a_changed_program_is_found_with_a_lock_of_its_fix(tmp_path: Path) -> None:
    bad, good = examples(RULES["JX502"], "python")
    (tmp_path / "pyproject.toml").write_text(settings_of(RULES["JX502"]))
    file = tmp_path / "activation.py"
    file.write_text(good)
    assert jaxsight("lock", cwd=tmp_path).returncode == 0
    assert jaxsight("check", "--locked", cwd=tmp_path).returncode == 0
    file.write_text(bad)
    done = jaxsight("check", "--locked", "--output-format", "json", cwd=tmp_path)
    assert "JX502" in {one["code"] for one in json.loads(done.stdout)}


def test_examples_of_settings_give_their_finding_and_fixes_give_none() -> None:
    bad, good = examples(RULES["JX900"], "toml")
    assert {finding.code for finding in parse_project(bad, "pyproject.toml").problems} == {"JX900"}
    assert parse_project(good, "pyproject.toml").problems == ()
