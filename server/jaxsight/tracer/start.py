"""The start of a tracer, which communicates with the server over standard input and output.

Before other imports, both streams are moved to private descriptors (`wire/descriptors.py`), so that
user code reads nothing from 0, and its output to 1 and 2 goes to the output pipe (that of standard
error).
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

from jaxsight.wire.descriptors import die_with_parent, take_descriptors


def main(arguments: Sequence[str]) -> int:
    """Serve until the server closes the pipe; with `--import`, answer one import."""
    # Garbage collection while JAX is imported takes a seventh of the start; `Tracer` enables it.
    gc.disable()
    incoming, outgoing = take_descriptors()
    die_with_parent()
    if "--import" in arguments:
        from jaxsight.tracer.whole_import import answer

        answer(incoming, outgoing)
    else:
        import dataclasses

        from jaxsight.files.bytecode import cached_bytecode, file_for

        with cached_bytecode(file_for("greeting"), dataclasses):
            from jaxsight.tracer.main import serve

        serve(incoming, outgoing)
    return 0
