"""What runs in the user's interpreter imports the standard library, NumPy and JAX alone.

An import graph cannot show this: these files are copied to where no other package of ours is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tools.lint.checkout import Checkout, Offender, inside, outside

SOURCE = "jaxsight_source"
BROUGHT = (
    "compiler",
    "hlo",
    "measuring",
    "meshes",
    "profiles",
    "rewriting",
    "targets",
    "tracer",
    "wire",
)
"""Packages that run outside the server's process, if not only there."""
WRITING_CALLS = ("expressions", "notation", "observing", "observing.functions")
"""The modules of `recording` that write the arguments of calls."""
SINGLE = (
    "__init__.py",
    "files/__init__.py",
    "files/appended.py",
    "files/bytecode.py",
    "files/locks.py",
    "files/ownership.py",
    "files/reading.py",
    "lru.py",
    "recording/__init__.py",
    "recording/expressions.py",
    "recording/notation.py",
    "recording/observing/__init__.py",
    "recording/observing/functions.py",
    "recording/programs/__init__.py",
    "recording/programs/compat/__init__.py",
    "recording/programs/compat/compiling.py",
    "text/__init__.py",
    "text/inert.py",
    "text/names.py",
    "text/parsing.py",
    "text/units.py",
    "timeline.py",
)
ALLOWED = frozenset({"jax", "jaxlib", "numpy", "ml_dtypes"})
"""Besides the standard library. JAX itself depends on all of them."""
OWN = (
    "jaxsight.files.appended",
    "jaxsight.files.bytecode",
    "jaxsight.files.locks",
    "jaxsight.files.ownership",
    "jaxsight.files.private",
    "jaxsight.files.reading",
    "jaxsight.files.texts",
    "jaxsight.lru",
    "jaxsight.text.inert",
    "jaxsight.text.names",
    "jaxsight.text.parsing",
    "jaxsight.text.units",
    "jaxsight.text.unknown_sizes",
    *(f"jaxsight.recording.{name}" for name in WRITING_CALLS),
    "jaxsight.recording.programs.compat.compiling",
    SOURCE,
    "jaxsight.timeline",
    *(f"jaxsight.{part}" for part in BROUGHT),
)
_BELOW_OWN = tuple(f"{own}." for own in OWN)
_PRIVATE = ("jax._src", "jaxlib.")


def offenders(checkout: Checkout) -> Iterator[Offender]:
    """Yield imports of other packages, and of private API outside `compat/`."""
    paths = {module.path for module in checkout.modules}
    for name in SINGLE:
        if outside(name) not in paths:
            yield Offender(outside(name), 1, "named in `tools/lint/walls.py`, but missing")
    for module in checkout.modules:
        name = inside(module.path)
        if name not in SINGLE and name.partition("/")[0] not in (SOURCE, *BROUGHT):
            continue
        in_compat = "compat" in name.split("/")[:-1]
        for line, imported in module.imports():
            if not _is_allowed(imported):
                message = (
                    f"imports `{imported}` in the user's interpreter, which has only the"
                    " standard library, NumPy and JAX"
                )
                yield Offender(module.path, line, message)
            elif imported.startswith(_PRIVATE) and not in_compat:
                message = f"imports private API outside of a `compat` folder: `{imported}`"
                yield Offender(module.path, line, message)


def _is_allowed(imported: str) -> bool:
    top = imported.partition(".")[0]
    return top in sys.stdlib_module_names or top in ALLOWED or f"{imported}.".startswith(_BELOW_OWN)
