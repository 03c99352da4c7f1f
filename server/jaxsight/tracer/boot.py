"""Start of a tracer, run by path in the user's interpreter: `python …/jaxsight/tracer/boot.py`.

The server talks over standard input and output. Before anything else is imported, both are moved to
private descriptors, so that user code finds nothing to read on 0 and whatever it prints to 1 and 2
goes to the output pipe (standard error's). The package is then made importable from where it lies,
by itself: the server's other packages must never come onto the path of the user's interpreter.
Standard library only, and nothing of the package at module level.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import sys
from pathlib import Path

FIRST_PRIVATE_DESCRIPTOR = 200
"""High enough that programs which close "all" descriptors by small numbers leave ours alone."""


def take_descriptors() -> tuple[int, int]:
    """Move the protocol away from 0 and 1; give both 1 and 2 to the output.

    Answers (read from, write to).
    """
    incoming, outgoing = private(0), private(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def private(descriptor: int) -> int:
    """A duplicate that child processes do not inherit."""
    if sys.platform == "win32":
        return os.dup(descriptor)
    import fcntl

    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_PRIVATE_DESCRIPTOR)
    except OSError:  # a process that may open fewer files
        return os.dup(descriptor)


def die_with_parent() -> None:
    """Ask Linux to kill this process when the server dies, however that happens.

    Elsewhere the closed pipe tells.
    """
    if sys.platform != "linux":
        return
    import ctypes
    import signal

    set_death_signal = 1  # PR_SET_PDEATHSIG
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_death_signal, int(signal.SIGKILL))


def make_importable(package: Path) -> None:
    """Make `package` importable under its own name, with nothing beside it."""
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
    # Looking for garbage while JAX is imported takes a seventh of the start; `Tracer` enables it.
    gc.disable()
    here = Path(__file__).resolve().parent
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here:
        # Python put it there to run this file; its modules must not hide others of the same name.
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
