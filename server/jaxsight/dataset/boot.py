"""Start a worker of `jaxsight dataset` by path with the user's Python: `python …/boot.py`.

With `--other-path`, XLA takes another code path than it does by default. With `--foreign`, programs
may not write files, start processes or use the network.

A worker reads requests from standard input and answers each on standard output, one JSON object per
line. Only this package becomes importable from its folder. At module level, this uses the standard
library only.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

VARIABLES = {
    "JAX_PLATFORMS": "cpu",
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",  # no file of this machine in programs
    "JAX_COMPILATION_CACHE_DIR": "",
    "XLA_FLAGS": "",
}


def make_importable(package: Path) -> None:
    """Make `package` importable under its own name, without its siblings."""
    spec = importlib.util.spec_from_file_location(
        package.name, package / "__init__.py", submodule_search_locations=[str(package)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {package}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[package.name] = module
    spec.loader.exec_module(module)


def main() -> None:
    """Answer requests until standard input ends."""
    os.environ.update(VARIABLES)
    os.environ.setdefault("JAX_ENABLE_X64", "1")
    make_importable(Path(__file__).parents[1])
    if "--other-path" in sys.argv:
        from jaxsight.dataset.compat import code_paths

        os.environ["XLA_FLAGS"] = code_paths.flags()
    from jaxsight.dataset.rows.worker import serve

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what programs print does not get among the answers
    serve(sys.stdin, answers, is_foreign="--foreign" in sys.argv)


if __name__ == "__main__":
    main()
