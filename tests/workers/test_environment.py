"""The environment of user code: the user's, without the server's own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jaxsight.workers.own_python import tracer_environment


def environment(folder: Path) -> str:
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").touch()
    return str(folder / "bin" / "python")


def test_what_the_user_exported_stays() -> None:
    found = tracer_environment("/usr/bin/python3", {"WANDB_MODE": "offline", "PYTHONPATH": "/lib"})
    assert found["WANDB_MODE"] == "offline"
    assert found["PYTHONPATH"] == "/lib"


def test_the_servers_packages_do_not_reach_user_code(tmp_path: Path) -> None:
    bundled = tmp_path / "bundled"
    (bundled / "pygls").mkdir(parents=True)
    (bundled / "pygls" / "__init__.py").touch()
    given = {
        "PYTHONPATH": f"{bundled}{os.pathsep}/lib",
        "PYTHONHOME": "/server",
        "PYTHONOPTIMIZE": "2",
    }
    found = tracer_environment("/usr/bin/python3", given)
    assert found["PYTHONPATH"] == "/lib"
    assert found.keys().isdisjoint({"PYTHONHOME", "PYTHONOPTIMIZE"})
    assert "PYTHONPATH" not in tracer_environment("/usr/bin/python3", {"PYTHONPATH": str(bundled)})


def test_the_servers_virtual_environment_is_not_the_users(tmp_path: Path) -> None:
    assert sys.prefix != sys.base_prefix, "the tests run in a virtual environment"
    found = tracer_environment("/usr/bin/python3", {"VIRTUAL_ENV": sys.prefix})
    assert "VIRTUAL_ENV" not in found


def test_the_interpreters_own_environment_is_activated(tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    found = tracer_environment(python, {"PATH": "/usr/bin", "VIRTUAL_ENV": "/other"})
    assert found["VIRTUAL_ENV"] == str(tmp_path / "venv")
    assert found["PATH"] == os.pathsep.join([str(tmp_path / "venv" / "bin"), "/usr/bin"])


def test_no_accelerator_is_taken_unless_one_is_asked_for() -> None:
    assert tracer_environment("python", {})["JAX_PLATFORMS"] == "cpu"
    assert tracer_environment("python", {"JAX_PLATFORMS": "cuda"})["JAX_PLATFORMS"] == "cuda"
    settings = {"JAX_PLATFORMS": "tpu"}
    assert (
        tracer_environment("python", {"JAX_PLATFORMS": "cuda"}, settings)["JAX_PLATFORMS"] == "tpu"
    )


def test_nothing_waits_for_a_debugger() -> None:
    assert (
        tracer_environment("python", {"PYTHONBREAKPOINT": "pdb.set_trace"})["PYTHONBREAKPOINT"]
        == "0"
    )
