"""Modules that imports would find, without importing any."""

from __future__ import annotations

import sys
from pathlib import Path

from jaxsight.tracer.handlers.table import find_modules
from jaxsight.tracer.job import Job, Traces
from jaxsight.wire.messages.requests import NEW, FindModules


def missing(*modules: str, folders: tuple[str, ...] = ()) -> tuple[str, ...]:
    return find_modules(Job(FindModules(NEW, folders, modules), Traces())).missing


def test_what_the_environment_has_is_found_and_not_imported() -> None:
    assert missing("jax", "sys", "tomllib", "no_such_module") == ("no_such_module",)
    assert "no_such_module" not in sys.modules


def test_what_a_folder_of_the_project_has_is_found_and_not_imported(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("raise SystemExit\n")
    (tmp_path / "package_of_it").mkdir()
    folders = ("/nowhere", str(tmp_path))
    assert missing("beside_it", "package_of_it", folders=folders) == ()
    assert missing("beside_it") == ("beside_it",)
    assert "beside_it" not in sys.modules
