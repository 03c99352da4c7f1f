"""What XLA made of the programs: compiled here for CPUs, and as stored for other devices."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jaxsight.wire.meshes import Mesh
from tests.compiler.distributed import programs

ARCHIVE = Path(__file__).with_name("hlo.zip")
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Made:
    """What XLA made of a program."""

    hlo: str
    before: str
    log: str
    places: str


@cache
def compiled(partitioner: str) -> dict[str, Made]:
    """Compile all programs for 8 CPU devices, with `shardy` or `gspmd`."""
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            [sys.executable, "-m", "tests.compiler.distributed.programs", folder, partitioner],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        return {
            name: Made(
                *(
                    Path(folder, f"{name}.{kind}").read_text()
                    for kind in ("hlo", "before", "log", "places")
                )
            )
            for name in programs.MESH_OF
        }


def mesh(name: str) -> Mesh:
    """The mesh of a program."""
    return Mesh(programs.AXES[programs.MESH_OF[name]])


def stored() -> list[str]:
    """The names of the stored texts: `h100/mlp`."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        return [name.removesuffix(".txt") for name in archive.namelist()]


def text(name: str) -> str:
    """A stored text."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        return archive.read(f"{name}.txt").decode()
