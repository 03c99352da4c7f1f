"""Print the names of all primitives that the installed JAX registers, in any of its modules.

In a process of its own: importing all of JAX registers types and settings for good.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import pkgutil
import warnings

import jax
from jax.extend.core import Primitive

_PROGRAMS = ("test_util", ".tools.", "__main__", "harnesses", "collect_profile")
"""Parts of names of modules that are programs or tests."""


def main() -> None:
    warnings.simplefilter("ignore")
    for module in pkgutil.walk_packages(jax.__path__, "jax.", onerror=lambda name: None):
        if any(part in module.name for part in _PROGRAMS):
            continue
        # Some need packages that are not installed, or a device.
        with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
            importlib.import_module(module.name)
    names = {
        found.name
        for found in gc.get_objects()
        if type(found) is not type and isinstance(found, Primitive)
    }
    print(*sorted(names), sep="\n")


if __name__ == "__main__":
    main()
