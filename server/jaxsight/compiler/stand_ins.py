"""What XLA looks for beside a GPU's compiler: an assembler, a linker and a device library that do
nothing.

The optimized HLO is made before they are called, and nothing that they make is run: no machine that
compiles for a GPU without having one needs NVIDIA's. They are programs that a compiler starts, so
where they are nobody but the user may write: the server keeps them in the user's cache folder and
names that in `VARIABLE`; a compiler that was told none (on another machine, or without a home
folder) makes a temporary folder and removes it at its end.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

VARIABLE = "JAXSIGHT_STAND_INS"

# Answers to `--version` so that it is taken for a real one, and makes the file that it is asked
# for.
_PROGRAM = b"""\
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

FILES = {"bin/ptxas": _PROGRAM, "bin/nvlink": _PROGRAM, "nvvm/libdevice/libdevice.10.bc": b""}
"""What each holds, by its name in the folder. Those in `bin` are programs."""


@cache
def folder() -> str:
    """Return the folder with the files: the server's, or one of this process alone."""
    return os.environ.get(VARIABLE) or _of_this_process()


def _of_this_process() -> str:
    made = Path(tempfile.mkdtemp(prefix="jaxsight-"))
    atexit.register(remove)
    for name, content in FILES.items():
        file = made / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(0o700)
    return str(made)


def remove() -> None:
    """Delete what this process made; for the ends that `atexit` does not see."""
    if folder.cache_info().currsize and folder() != os.environ.get(VARIABLE):
        shutil.rmtree(folder(), ignore_errors=True)
