"""The start of a compiler, with a Python executable that has jaxlib.

As in a tracer, the protocol moves to private descriptors, and XLA's output goes to standard error.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

from jaxsight.files.bytecode import cached_bytecode, file_for
from jaxsight.wire.descriptors import die_with_parent, take_descriptors

_BEHIND = 5
"""By how much the priority of a compiler that nobody waits for is lower than the user's work, a
choice: with less it slows an editor down, with more it starves while a program trains."""


def main(arguments: Sequence[str]) -> int:
    """Serve until the server closes the pipe; with `--nice`, other processes come first."""
    if "--nice" in arguments and hasattr(os, "nice"):
        os.nice(_BEHIND)
    with cached_bytecode(file_for("compiler"), dataclasses):
        from jaxsight.compiler.serve import serve

    incoming, outgoing = take_descriptors()
    die_with_parent()
    serve(incoming, outgoing)
    return 0
