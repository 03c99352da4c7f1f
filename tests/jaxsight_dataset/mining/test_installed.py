"""What `jaxsight dataset mine` makes of installed packages: with assumed inputs, and licences."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxsight_dataset.reading import read_rows
from tests.jaxsight_dataset.tables.conftest import SERVER, jaxsight

TIDES = '''\
"""Levels of water."""

import jax
import jax.numpy as jnp


def level(height, time, period):
    """Return the level at a time."""
    return height * jnp.cos(2 * jnp.pi * time / period)


def spread(levels):
    """Return how much levels vary.

    >>> spread(jnp.array([1.0, 3.0, 2.0]))
    Array(2., dtype=float32)
    """
    return jnp.max(levels) - jnp.min(levels)


def error(level, later):
    """Return how far a level is from a target.

    >>> error(jnp.array([1.0, 3.0]), jnp.array([2.0, 2.5]))
    Array([1.  , 0.25], dtype=float32)
    """
    return (level - jax.lax.stop_gradient(later)) ** 2


def noted(levels):
    """Pass levels through Python.

    >>> noted(jnp.array([1.0, 3.0]))
    Array([1., 3.], dtype=float32)
    """
    return jax.pure_callback(lambda x: x, levels, levels)


def _hidden(levels):
    return jnp.sort(levels)
'''


def install(folder: Path, name: str, text: str, metadata: str) -> None:
    """Lay out a package as pip does."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(text)
    about = folder / f"{name}-1.4.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: {name}\nVersion: 1.4\n{metadata}\n")
    (about / "top_level.txt").write_text(name)


def mine(folder: Path, *arguments: str) -> dict[str, Any]:
    """Mine packages of `folder / "site"` into `folder / "out"`, and return what was printed."""
    done = jaxsight(
        *("dataset", "mine", *arguments, "out", "--format", "jsonl", "--jobs", "1", "--json"),
        *("--python", sys.executable),
        cwd=folder,
        PYTHONPATH=f"{SERVER}:{folder / 'site'}",
    )
    assert done.returncode == 0, done.stderr
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.mark.slow
def test_functions_without_example_inputs_are_called_with_assumed_ones(tmp_path: Path) -> None:
    install(tmp_path / "site", "tides", TIDES, "License: Apache 2.0")
    made = mine(tmp_path, "tides", "--assume", "5")["made"]
    rows = {row["function"]: row for row in read_rows(tmp_path / "out")}
    assert {name: row["tags"] for name, row in rows.items()} == {
        "level": ["assumed-inputs"],
        "spread": [],
        "error": ["own-derivative"],
    }
    assert made["rejected"] == {"calls Python back": 1}
    assert {row["provenance"]["licence"] for row in rows.values()} == {"Apache-2.0"}
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| `tides` | 3 | 100.0 % |" in card


@pytest.mark.slow
def test_a_package_without_a_known_licence_makes_no_rows(tmp_path: Path) -> None:
    install(tmp_path / "site", "tides", TIDES, "License-Expression: MIT")
    install(tmp_path / "site", "dunes", TIDES.replace("levels", "heights"), "Summary: none")
    made = mine(tmp_path, "tides", "dunes")["made"]
    assert made["rows"] == 2
    assert made["rejected"] == {"calls Python back": 1, "no known licence": 3}


def test_a_package_that_cannot_be_imported_is_named(tmp_path: Path) -> None:
    install(tmp_path / "site", "dunes", "import jax\njax.gone", "License-Expression: MIT")
    done = jaxsight(
        *("dataset", "mine", "dunes", "out", "--format", "jsonl", "--python", sys.executable),
        cwd=tmp_path,
        PYTHONPATH=f"{SERVER}:{tmp_path / 'site'}",
    )
    assert done.returncode == 2
    assert "error: dunes cannot be imported: module 'jax' has no attribute 'gone'" in done.stderr
