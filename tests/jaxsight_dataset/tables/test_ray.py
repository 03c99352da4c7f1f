"""The same bytes from a Ray cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.jaxsight_dataset.tables.conftest import SPEC, jaxsight


@pytest.mark.slow
def test_ray_makes_the_bytes_of_local_processes(generated: Path, tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SPEC)
    done = jaxsight(
        *("dataset", "generate", "pairs", "--spec", "small.toml", "--engine", "ray"),
        *("--jobs", "2", "--python", sys.executable),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    files = [path for path in (generated / "pairs").rglob("*") if path.is_file()]
    assert len(files) > 6
    for path in files:
        copy = tmp_path / path.relative_to(generated)
        assert copy.read_bytes() == path.read_bytes(), path.name
