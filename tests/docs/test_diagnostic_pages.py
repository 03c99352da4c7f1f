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


def settings_of(code: str) -> str:
    """What the example of a page is checked with: codes that are off by default are selected, the target is what the page names."""
    target = "cpu" if "target `cpu`" in page(code) else "cuda:h100"
    select = "" if CODES[code].on else f"select = [{json.dumps(code)}]\n"
    return f'[tool.jaxsight]\npython = {json.dumps(sys.executable)}\ntarget = "{target}"\n{select}'


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
def test_examples_in_python_give_their_finding_and_fixes_give_none(tmp_path: Path) -> None:
    expected = set()
    for code in CODES:
        if blocks := examples(code, "python"):
            bad, good = blocks
            folder = tmp_path / ("on" if CODES[code].on else code)
            folder.mkdir(exist_ok=True)
            (folder / "pyproject.toml").write_text(settings_of(code))
            (folder / f"{code}_bad.py").write_text(bad)
            (folder / f"{code}_good.py").write_text(good)
            expected.add(code)
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
    assert {code for code in expected if code not in found[f"{code}_bad"]} == set()
    assert {code: found[f"{code}_good"] for code in expected if found[f"{code}_good"]} == {}


def test_examples_of_settings_give_their_finding_and_fixes_give_none() -> None:
    bad, good = examples("JX900", "toml")
    assert {finding.code for finding in parse_project(bad, "pyproject.toml").problems} == {"JX900"}
    assert parse_project(good, "pyproject.toml").problems == ()
