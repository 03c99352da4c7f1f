"""Stand-ins for NVIDIA's assembler, linker and device library that do nothing.

XLA requires them to compile for a GPU (`assemble_compilation_provider.cc` in its stream_executor).
It has the optimized HLO before it calls them, and their output is never run: no machine that
compiles for a GPU without having one needs NVIDIA's programs.
They are programs that a compiler starts, so nobody but the user may write to their folder: a
compiler creates a temporary one, and removes it when it exits. If it is killed, its guardian does.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

# Answers `--version` like the real program, and creates the output file.
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
"""Contents by path in the folder; those in `bin` are programs."""


@cache
def folder() -> str:
    """Return a folder of this process alone with the files."""
    own = Path(tempfile.mkdtemp(prefix="jaxsight-"))
    atexit.register(remove)
    for name, content in FILES.items():
        file = own / name
        file.parent.mkdir(parents=True, exist_ok=True)
        # A confined process may not change modes: a file has its own from the beginning.
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o700)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
    return str(own)


def remove() -> None:
    """Delete the temporary folder, also on exits without `atexit`."""
    if folder.cache_info().currsize:
        shutil.rmtree(folder(), ignore_errors=True)
