"""The process that reads a program's file for the server, in the user's Python.

It runs no code of the user's: the content of the file is on stdin, and the options, JSON, are the
argument. It prints one JSON object: a `ProgramText`, or an `error`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import warnings

MOST_DEVICES = 512
"""CPU devices that JAX is told to have, a choice: as many as a target may have."""


def main(arguments: list[str]) -> int:
    """Print the text of the program on stdin; return the exit status."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # MLIR and plugins of JAX print what they like
    content = sys.stdin.buffer.read()
    warnings.simplefilter("ignore")
    import jax

    from jaxsight_source.api import text_of
    from jaxsight_source.programs.contents import devices_of

    try:
        # Its source runs on as many devices, which JAX must know before it uses any.
        if 1 < (devices := devices_of(content)) <= MOST_DEVICES:
            jax.config.update("jax_num_cpu_devices", devices)  # type: ignore[no-untyped-call]
        answer = dataclasses.asdict(text_of(content, json.loads(arguments[0])))
    except Exception as error:  # noqa: BLE001 - whatever it is, the server shows it
        why = " ".join(str(error).split()) or type(error).__name__
        answer = {"error": why, "type": type(error).__name__}
    json.dump(answer, out)
    out.close()
    return 0
