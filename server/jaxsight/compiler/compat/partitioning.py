"""Programs for several devices: how XLA partitions them, and what it says about that.

This applies to JAX 0.8 to 0.12, with Shardy and GSPMD.
XLA removes the shardings of a program's values when it partitions the program. They are read from
its dump of the program after the pass that chooses them (`xla_dump_hlo_pass_re`), which libtpu
writes, too.
That a value was replicated to reshard it, XLA only logs (`xla/service/spmd/spmd_partitioner.cc`).

Private API used: the fields of `ExecutableBuildOptions`.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jaxsight.compiler.compat import schedule
from jaxsight.wire.meshes import Distribution

_PASSES = ("shardy-xla", "sharding-propagation")
_DUMPING: Mapping[str, str | bool] = {
    "xla_dump_hlo_pass_re": f"^({'|'.join(_PASSES)})$",
    "xla_dump_hlo_as_text": True,
}
_AFTER = re.compile(rf"(module_\d+)\..*\.after_({'|'.join(_PASSES)})\.before_.*\.txt")
_STDERR = 2
_LONGEST_LOG = 1 << 20
"""Bytes of a log that are read, a choice: a line for each of thousands of values."""


def assignment(devices: Sequence[Any], distribution: Distribution) -> np.ndarray[Any, Any]:
    """Return the ids of the devices by replica and partition."""
    ids = [device.id for device in devices]
    return np.array(ids).reshape(distribution.replicas, distribution.partitions)


def distribute(build: Any, distribution: Distribution) -> None:
    """Set how a program is partitioned in `ExecutableBuildOptions`.

    As `create_compile_options` in `jax/_src/interpreters/pxla.py` does for programs of `jax.jit`.
    """
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = distribution.is_shardy
    if distribution.free_inputs:
        build.allow_spmd_sharding_propagation_to_parameters = list(distribution.free_inputs)
    if distribution.free_outputs:
        build.allow_spmd_sharding_propagation_to_output = list(distribution.free_outputs)


@dataclass(slots=True)
class WatchedCompile:
    """A compile of a program for several devices, as it is watched."""

    options: Mapping[str, str | bool]
    """XLA's debug options for it."""
    hlo: str = ""
    """The program before it is partitioned, with the sharding of each value; known afterwards."""
    log: str = ""
    """What XLA logged; known afterwards."""

    def also(self, folder: Path) -> None:
        """Look for the dump in another folder, too, which replaces the option `xla_dump_to`."""
        self.hlo = self.hlo or _dumped(folder)


@contextlib.contextmanager
def watched(
    distribution: Distribution, options: Mapping[str, str | bool]
) -> Iterator[WatchedCompile]:
    """Watch a compile in the body; a program for one device is compiled as it is.

    Another thread's output to standard error meanwhile is written afterwards.
    """
    watch = WatchedCompile(options)
    if distribution.devices == 1:
        yield watch
        return
    with schedule.dump_folder() as folder:
        watch.options = {**options, **_DUMPING, "xla_dump_to": str(folder)}
        with _captured(watch):
            yield watch
        watch.hlo = watch.hlo or _dumped(folder)


def _dumped(folder: Path) -> str:
    """Return the program in a folder before it was partitioned; empty if there is none.

    XLA may also have compiled other modules, such as candidates for a matmul: the program's is the
    first. A pass may have run more than once.
    """
    files: dict[str, list[Path]] = {}
    for file in sorted(folder.iterdir()):
        if (match := _AFTER.fullmatch(file.name)) is not None:
            files.setdefault(match[1], []).append(file)
    first = next(iter(files.values()), [])
    return first[-1].read_text(encoding="utf-8", errors="replace") if first else ""


@contextlib.contextmanager
def _captured(watch: WatchedCompile) -> Iterator[None]:
    """Keep what is written to standard error in the body, and write it afterwards."""
    with tempfile.TemporaryFile() as file:
        try:
            kept = os.dup(_STDERR)
        except OSError:  # there is no standard error
            yield
            return
        os.dup2(file.fileno(), _STDERR)
        try:
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            file.seek(0)
            data = file.read(_LONGEST_LOG)
            watch.log = data.decode(errors="replace")
            with contextlib.suppress(OSError):
                os.write(_STDERR, data)
