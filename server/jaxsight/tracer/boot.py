"""Start a tracer by path with the user's Python: `python …/jaxsight/tracer/boot.py`.

The server communicates over standard input and output.
First, only this package becomes importable from its folder: the server's other packages must never
be on the path of the user's Python.
Then, before any other import, both streams are moved to private descriptors
(`wire/descriptors.py`), so that user code reads nothing from 0, and its output to 1 and 2 goes to
the output pipe (that of standard error).

At module level, this uses the standard library only, and nothing of the package. Pythons since 3.7
can read this file: those that are too old say so.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
from pathlib import Path

OLDEST = (3, 11)
TOO_OLD = 78
"""The exit status in a Python that is older than `OLDEST`; the last line of the output says so."""


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


def _too_old(version: str, oldest: str) -> int:
    """Say that this Python cannot run the tracer, and return the exit status."""
    sys.stderr.write(
        f"{sys.executable} is Python {version}; jaxsight requires {oldest} or newer. Choose "
        "another interpreter with the setting `jaxsight.python` (`python` under [tool.jaxsight] in "
        "pyproject.toml).\n"
    )
    return TOO_OLD


def main() -> None:
    """Serve until the server closes the pipe; with `--import`, answer one import."""
    if sys.version_info < OLDEST:
        version, oldest = (
            ".".join(map(str, numbers)) for numbers in (sys.version_info[:3], OLDEST)
        )
        sys.exit(_too_old(version, oldest))
    # Garbage collection while JAX is imported takes a seventh of the start; `Tracer` enables it.
    gc.disable()
    here = Path(__file__).resolve().parent
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here:
        # Python added it to run this file; its modules must not shadow others of the same name.
        del sys.path[0]
    make_importable(here.parent)
    from jaxsight.wire.descriptors import die_with_parent, take_descriptors

    incoming, outgoing = take_descriptors()
    die_with_parent()
    if sys.argv[1:] == ["--import"]:
        from jaxsight.tracer.whole_import import answer

        answer(incoming, outgoing)
    else:
        import dataclasses

        from jaxsight.files.bytecode import cached_bytecode, file_for

        with cached_bytecode(file_for("greeting"), dataclasses):
            from jaxsight.tracer.main import serve

        serve(incoming, outgoing)


if __name__ == "__main__":
    main()
