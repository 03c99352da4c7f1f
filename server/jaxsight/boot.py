"""Start a process of jaxsight by path with another Python: `python …/jaxsight/boot.py PROCESS …`.

PROCESS is `tracer`, `compiler`, `dataset` or `repro`: the package whose `start` runs.
Only this package becomes importable from its folder: the server's other packages must never be on
the path of the user's Python.

At module level, this uses the standard library only, and nothing of the package. Pythons since 3.7
can read this file: those that are too old say so.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

OLDEST = (3, 11)  # the first whose code has columns (PEP 657), by which expressions are found
TOO_OLD = 78
"""The exit status in a Python older than `OLDEST`, whose last line of output says so: `EX_CONFIG`
of sysexits.h, which Python itself never exits with."""


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


def main() -> int:
    """Run the process that the first argument names; return its exit status."""
    if sys.version_info < OLDEST:
        version, oldest = (".".join(map(str, each)) for each in (sys.version_info[:3], OLDEST))
        sys.stderr.write(
            f"{sys.executable} is Python {version}; jaxsight requires {oldest} or newer. Choose "
            "another interpreter with the setting `jaxsight.python` (`python` under "
            "[tool.jaxsight] in pyproject.toml).\n"
        )
        return TOO_OLD
    here = Path(__file__).resolve().parent
    if sys.path and sys.path[0] and Path(sys.path[0]).resolve() == here:
        # Python added it to run this file; its modules must not shadow others of the same name.
        del sys.path[0]
    make_importable(here)
    process = sys.argv.pop(1)
    status: int = importlib.import_module(f"jaxsight.{process}.start").main(sys.argv[1:])
    return status


if __name__ == "__main__":
    sys.exit(main())
