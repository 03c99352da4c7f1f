"""SECURITY.md says what the program does."""

from __future__ import annotations

import re
from pathlib import Path

from jaxsight.files import reading
from jaxsight.settings import read_project
from jaxsight.settings.reading import DEEPEST

PAGE = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
PACKAGE = Path(__file__).parents[2] / "server" / "jaxsight"


def row(name: str) -> str:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {name} |")]
    return line.split("|")[2].strip()


def test_limits_are_those_in_force() -> None:
    assert row("`pyproject.toml`") == f"{reading.SETTINGS // 1024} KiB, {DEEPEST} levels of nesting"
    assert row("Python files, baselines, reports") == f"{reading.SOURCE // 1024**2} MiB"
    assert row("jaxsight's own records") == f"{reading.SMALL // 1024} KiB"


def test_the_depth_that_is_named_is_read_and_no_deeper(tmp_path: Path) -> None:
    for depth, problems in ((DEEPEST, 0), (DEEPEST + 1, 1)):
        (tmp_path / "pyproject.toml").write_text(f"a = {'[' * depth}{']' * depth}\n")
        assert len(read_project(tmp_path).problems) == problems


def test_all_places_in_the_cache_folder_are_named() -> None:
    named = set(re.findall(r"`([\w-]+)/` in the cache folder", PAGE))
    asked: set[str] = set()
    for file in PACKAGE.rglob("*.py"):
        asked |= set(
            re.findall(r'(?:cache|new)_folder(?:\(|, )"([\w-]+)"', file.read_text(encoding="utf-8"))
        )
    assert asked == named


def test_no_module_of_the_server_speaks_to_a_network() -> None:
    modules = {"urllib.request", "http.client", "requests", "httpx", "ftplib", "smtplib"}
    for file in PACKAGE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        assert not modules & set(re.findall(r"^\s*(?:import|from) ([\w.]+)", text, re.MULTILINE)), (
            file
        )
