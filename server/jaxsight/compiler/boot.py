"""Start a compiler by path, with a Python executable that has jaxlib.

The command is `python …/jaxsight/compiler/boot.py`; with `--nice`, other processes come first.

The start is the same as a tracer's (see `jaxsight.tracer.boot`): the protocol moves to private
descriptors, XLA's output goes to standard error, and only this package becomes importable from its
folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

_BEHIND = 5
"""By how much the priority of a compiler that nobody waits for is lower than the user's work."""


def main() -> None:
    """Serve until the server closes the pipe."""
    here = Path(__file__).resolve().parent
    package = here.parent
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here:
        del sys.path[0]
    import importlib.util

    spec = importlib.util.spec_from_file_location(
        package.name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[package.name] = module
    spec.loader.exec_module(module)

    if "--nice" in sys.argv and hasattr(os, "nice"):
        os.nice(_BEHIND)

    import dataclasses

    from jaxsight.files.bytecode import cached_bytecode, file_for

    with cached_bytecode(file_for("compiler"), dataclasses):
        from jaxsight.compiler.serve import serve
    from jaxsight.wire.descriptors import die_with_parent, take_descriptors

    incoming, outgoing = take_descriptors()
    die_with_parent()
    serve(incoming, outgoing)


if __name__ == "__main__":
    main()
