"""The locks: every version pinned by hashes, from no particular index, and all of the project's
dependencies in them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"^([a-z0-9._-]+)==\S+", re.MULTILINE)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_pins_by_hashes_and_names_no_index(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    for requirement in re.split(r"\n(?=\S)", text):
        if not requirement.startswith("#"):
            assert PIN.match(requirement)
            assert "--hash=sha256:" in requirement


@pytest.mark.parametrize("name", ["demo", "test-py311", "test-py312", "test-py314"])
def test_a_lock_of_the_server_has_all_of_its_dependencies(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {re.split(r"[<>=]", dependency)[0] for dependency in project["dependencies"]}
    pinned = set(PIN.findall((ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")))
    assert wanted | {"jax"} <= pinned
