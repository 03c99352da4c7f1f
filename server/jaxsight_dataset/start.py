"""The start of a worker of `jaxsight dataset`, with the user's Python.

A worker reads requests from standard input and answers each on standard output, one JSON object per
line.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

DEVICES = 8
"""Simulated devices of this machine's CPU: as many as a host of TPUs or GPUs often has."""

VARIABLES = {
    "NPROC": "1",  # by which XLA counts cores: rows shall not depend on those of the machine
    "JAX_PLATFORMS": "cpu",
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",  # no file of this machine in programs
    "JAX_COMPILATION_CACHE_DIR": "",
    "XLA_FLAGS": "",
    "JAX_NUM_CPU_DEVICES": str(DEVICES),
}


def main(arguments: Sequence[str]) -> int:
    """Answer requests until standard input ends.

    With `--other-path`, XLA takes another code path than it does by default. With `--foreign`,
    programs may not write files, start processes or use the network.
    """
    os.environ.update(VARIABLES)
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    if "--other-path" in arguments:
        from jaxsight_dataset.compat import code_paths

        os.environ["XLA_FLAGS"] = code_paths.flags()
    from jaxsight_dataset.worker import serve

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print does not get among the answers
    serve(sys.stdin, answers, is_foreign="--foreign" in arguments)
    return 0
