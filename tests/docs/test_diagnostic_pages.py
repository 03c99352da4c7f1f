"""Every code has its page, and the pages tell the truth: their first example gives the finding, the second does not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from jaxsight.engine.settings import parse_project
from jaxsight.findings.catalogue import CODES

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "diagnostics"
SECTIONS = ("## Why", "## Example", "## Fix", "## When to ignore it")


def page(code: str) -> str:
    return (PAGES / f"{code}.md").read_text(encoding="utf-8")


def examples(code: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page(code), re.MULTILINE | re.DOTALL)


def test_every_code_has_a_page_that_the_index_and_the_navigation_name() -> None:
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert {path.stem for path in PAGES.glob("JX*.md")} == set(CODES)
    for code in CODES.values():
        assert f"| [{code.code}]({code.code}.md) | {code.name} | {code.summary} |" in index
        assert f"diagnostics/{code.code}.md" in navigation


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_a_page_has_its_title_and_all_sections(code: object) -> None:
    assert isinstance(code, type(CODES["JX400"]))
    text = page(code.code)
    assert text.startswith(f"# {code.code}: {code.name}\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == list(SECTIONS)


def test_examples_in_python_give_their_finding_and_fixes_give_none(tmp_path: Path) -> None:
    expected = {}
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.jaxsight]\npython = {json.dumps(sys.executable)}\n"
    )
    for code in CODES:
        if blocks := examples(code, "python"):
            bad, good = blocks
            (tmp_path / f"{code}_bad.py").write_text(bad)
            (tmp_path / f"{code}_good.py").write_text(good)
            expected |= {f"{code}_bad": {code}, f"{code}_good": set()}
    done = subprocess.run(
        [sys.executable, "-m", "jaxsight", "check", "--output-format", "json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "server")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stderr
    found: dict[str, set[str]] = defaultdict(set)
    for one in json.loads(done.stdout):
        found[Path(one["filename"]).stem].add(one["code"])
    assert {name: found[name] for name in expected} == expected


def test_examples_of_settings_give_their_finding_and_fixes_give_none() -> None:
    bad, good = examples("JX900", "toml")
    assert {finding.code for finding in parse_project(bad, "pyproject.toml").problems} == {"JX900"}
    assert parse_project(good, "pyproject.toml").problems == ()
