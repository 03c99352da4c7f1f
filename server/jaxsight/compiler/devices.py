"""The device of a target, in the process that compiles: the one that is here, or a description of one that is not."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jaxsight.compiler.chips import Gpu, Tpu
from jaxsight.compiler.compat import xla
from jaxsight.compiler.targets import UnknownTarget, parse

GUESSED = "autotuned choices (which matmul kernel, which tiles) are XLA's guesses: they are measured on a device only"
SORTS = "large sorts are kernels of XLA's own; on a device NVIDIA's CUB sorts"


class NotHere(Exception):
    """This process cannot compile for the target; the text says why."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A device, XLA's options that go with it, and what differs from a compile on the device itself."""

    device: xla.Device
    options: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@cache
def device(name: str) -> Prepared:
    """The device of a target.

    Raises:
        NotHere: there is none, or its plugin is not installed.
    """
    try:
        target = parse(name)
        match target.chip:
            case Gpu() as gpu:
                described = xla.described("cuda", topology="1x1x1", target_config=gpu.specification)
                return Prepared(
                    described, {"xla_gpu_cuda_data_dir": _stand_ins()}, (GUESSED, SORTS)
                )
            case Tpu() as tpu:
                return Prepared(xla.described("tpu", topology_name=tpu.topology))
            case None:
                return Prepared(xla.local(target.platform))
    except (xla.NoDevice, UnknownTarget) as error:
        raise NotHere(str(error)) from error


# Answers to `--version` so that it is taken for a real one, and makes the file that it is asked for.
_STAND_IN = """\
#!/bin/sh
if [ "$1" = --version ]; then
    echo "Cuda compilation tools, release 13.0, V13.0.88"
    exit 0
fi
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then : > "$2"; fi
    shift
done
"""


@cache
def _stand_ins() -> str:
    """A folder with an assembler, a linker and a device library that do nothing.

    The optimized HLO is made before they are called, and nothing that they make is run: no machine that compiles for a GPU without having one needs
    NVIDIA's.
    """
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir(), f"jaxsight-no-cuda-{owner}")
    if not folder.is_dir():
        made = Path(tempfile.mkdtemp(prefix="jaxsight-"))
        (made / "bin").mkdir()
        for name in ("ptxas", "nvlink"):
            tool = made / "bin" / name
            tool.write_text(_STAND_IN)
            tool.chmod(0o755)
        library = made / "nvvm" / "libdevice"
        library.mkdir(parents=True)
        (library / "libdevice.10.bc").write_bytes(b"")
        with contextlib.suppress(OSError):  # another compiler was faster
            made.rename(folder)
    return str(folder)
