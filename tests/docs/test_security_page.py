"""SECURITY.md names the depth to which settings are read."""

from __future__ import annotations

from pathlib import Path

from jaxsight.settings.reading import DEEPEST, read_project


def test_the_depth_that_is_named_is_read_and_no_deeper(tmp_path: Path) -> None:
    for depth, problems in ((DEEPEST, 0), (DEEPEST + 1, 1)):
        (tmp_path / "pyproject.toml").write_text(f"a = {'[' * depth}{']' * depth}\n")
        assert len(read_project(tmp_path).problems) == problems
