"""Start a tracer by path with the user's Python: `python …/jaxsight/tracer/boot.py`.

The server communicates over standard input and output.
Before any other import, both are moved to private descriptors, so that user code reads nothing from
0, and its output to 1 and 2 goes to the output pipe (that of standard error).
Then only this package becomes importable from its folder: the server's other packages must never be
on the path of the user's Python.

At module level, this uses the standard library only, and nothing of the package.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import sys
from pathlib import Path

FIRST_PRIVATE_DESCRIPTOR = 200
"""High enough that programs that close "all" descriptors up to a small number do not close ours."""


def take_descriptors() -> tuple[int, int]:
    """Move the protocol away from descriptors 0 and 1, and redirect 1 to 2.

    Returns the descriptors to read from and to write to.
    """
    incoming, outgoing = private(0), private(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def private(descriptor: int) -> int:
    """Return a duplicate that child processes do not inherit."""
    if sys.platform == "win32":
        return os.dup(descriptor)
    import fcntl

    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_DESCRIPTOR)
    except OSError:  # the limit of open files is lower
        return os.dup(descriptor)


def die_with_parent() -> None:
    """Have Linux kill this process when the server exits for any reason.

    On other systems, the closed pipe ends the process.
    """
    if sys.platform != "linux":
        return
    import ctypes
    import signal

    set_death_signal = 1  # PR_SET_PDEATHSIG
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_death_signal, int(signal.SIGKILL))


def make_importable(package: Path) -> None:
    """Make `package` importable under its own name, without its siblings."""
    name = package.name
    spec = importlib.util.spec_from_file_location(
        name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def main() -> None:
    """Serve until the server closes the pipe; with `--import`, answer one import."""
    # Garbage collection while JAX is imported takes a seventh of the start; `Tracer` enables it.
    gc.disable()
    here = Path(__file__).resolve().parent
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here:
        # Python added it to run this file; its modules must not shadow others of the same name.
        del sys.path[0]
    incoming, outgoing = take_descriptors()
    die_with_parent()
    make_importable(here.parent)

    if sys.argv[1:] == ["--import"]:
        from jaxsight.tracer.whole_import import answer

        answer(incoming, outgoing)
    else:
        from jaxsight.tracer.serve import serve

        serve(incoming, outgoing)


if __name__ == "__main__":
    main()
