"""Start a process of jaxsight by path with another Python: `python …/jaxsight/boot.py PROCESS …`.

PROCESS is the name of the package whose `start` runs: `tracer` and `compiler` of jaxsight's own, or
what follows `jaxsight_` in a package beside it (`source`, `repro`, `dataset`).
Only `PACKAGES` and the process' own become importable from their folder: the server's other
packages must never be on the path of the user's Python.

At module level, this uses the standard library only, and nothing of the packages. Pythons since 3.7
can read this file: those that are too old say so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from importlib.machinery import FileFinder, SourceFileLoader
from pathlib import Path
from typing import Any

OLDEST = (3, 11)  # the first whose code has columns (PEP 657), by which expressions are found
PACKAGES = ("jaxsight", "jaxsight_source")
_KEPT = "JAXSIGHT_KEPT"  # of `files/own_folders.py`
TOO_OLD = 78
"""The exit status in a Python older than `OLDEST`, whose last line of output says so: `EX_CONFIG`
of sysexits.h, which Python itself never exits with."""


class _Loader(SourceFileLoader):
    """Keeps the bytecode of our packages in another folder, as their own may not be written."""

    kept = ""

    def get_data(self, path: str) -> bytes:
        if path.endswith(".pyc"):
            with contextlib.suppress(OSError):
                return super().get_data(self._kept(path))
        return super().get_data(path)

    def set_data(self, path: str, data: Any, **options: Any) -> None:
        super().set_data(self._kept(path), data, **options)

    def _kept(self, path: str) -> str:
        return os.path.join(self.kept, "bytecode", path.lstrip(os.sep).replace(os.sep, "-"))  # noqa: PTH118


def keep_bytecode(folder: Path, kept: str) -> None:
    """Keep the bytecode of the packages in `folder` in another: this process may write no other."""
    _Loader.kept = kept
    ours = str(folder / "jaxsight")  # and those beside it, whose names begin with it

    def finder(path: str) -> FileFinder:
        if not path.startswith(ours):
            raise ImportError(path)
        return FileFinder(path, (_Loader, [".py"]))

    sys.path_hooks.insert(0, finder)


def make_importable(folder: Path, *names: str) -> None:
    """Make packages in `folder` importable under their own names, without their siblings."""
    for name in names:
        package = folder / name
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
    folder = here.parent
    process = sys.argv.pop(1)
    beside = f"jaxsight_{process}"
    own = beside if (folder / beside).is_dir() else f"{here.name}.{process}"
    make_importable(folder, *dict.fromkeys((*PACKAGES, own.partition(".")[0])))
    if kept := os.environ.get(_KEPT):
        keep_bytecode(folder, kept)
    status: int = importlib.import_module(f"{own}.start").main(sys.argv[1:])
    return status


if __name__ == "__main__":
    sys.exit(main())
