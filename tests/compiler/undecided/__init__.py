"""Programs that were compiled for an absent H100, with what one did.

`h100.zip` has the optimized HLO of 131 programs by JAX 0.11.2 without a device, and of the same
version on an NVIDIA H100 80GB HBM3 the kernels, launches and temporaries (`measured.json`): launches
are the events of its profile, with copies and clears; those of a loop of unknown length are one run.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from jaxsight.compiler.hlo import read
from jaxsight.targets.chips import GPUS
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.kernel_work import at_least, at_most

ARCHIVE = Path(__file__).with_name("h100.zip")


@dataclass(frozen=True)
class Program:
    """A program: what the H100 did, and the bytes of temporaries of the compile without it."""

    name: str
    kernels: int
    launches: float
    temporaries: int
    compiled: int
    text: str

    @cached_property
    def graph(self) -> Graph:
        """The kernel graph of the compile without the device."""
        workspace = GPUS["h100"].blas_workspace
        return read(self.text, platform="cuda", capability="9.0", workspace=workspace)

    @property
    def range(self) -> tuple[int, int]:
        """The minimum and maximum of temporaries, the latter -1 if unknown."""
        undecided = self.graph.undecided
        return at_least(self.compiled, undecided), at_most(self.compiled, undecided)


@cache
def programs() -> tuple[Program, ...]:
    """Return all programs."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        rows = json.loads(archive.read("measured.json"))
        return tuple(
            Program(name, text=archive.read(f"{index}.txt").decode(), **row)
            for index, (name, row) in enumerate(rows.items())
        )


def program(name: str) -> Program:
    """Return a program by its name."""
    return next(each for each in programs() if each.name == name)
