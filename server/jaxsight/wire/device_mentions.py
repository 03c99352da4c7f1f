"""Which code may depend on the number of devices; the server and the tracer decide it alike.

The number of devices is in the key of questions about such code only, and a tracer keeps the
devices that it has for all other code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from jaxsight.wire.messages.requests import Trace

_MENTIONS = re.compile(r"devices?\b|device_count|[Mm]esh|pmap|[Ss]hard")
_IMPORTS = re.compile(r"^\s*(?:from\s+(\.*\w*)[\w.]*\s+import\b|import\s+([^\n#;]+))", re.MULTILINE)
_HIDDEN_IMPORT = re.compile(r"\bimportlib\b|__import__")
_SILENT = sys.stdlib_module_names | {
    "beartype", "chex", "diffrax", "distrax", "einops", "equinox", "flax", "haiku", "jax", "jaxlib",
    "jaxopt", "jaxtyping", "lineax", "ml_dtypes", "numpy", "numpyro", "optax", "optimistix",
    "scipy", "typing_extensions",
}  # fmt: skip
"""Packages whose import does not read the number of devices; others might be the user's own."""


def mentions_devices(text: str) -> bool:
    """Return whether code names devices, meshes or shardings."""
    return _MENTIONS.search(text) is not None


def names_devices(request: Trace) -> bool:
    """Return whether the slice or the inputs of a request name devices, meshes or shardings."""
    return any(map(mentions_devices, _texts(request)))


def may_depend_on_devices(request: Trace) -> bool:
    """Return whether a request may depend on the number of devices, also by its imports."""
    return names_devices(request) or any(map(_imports_others, _texts(request)))


def _texts(request: Trace) -> Iterator[str]:
    for chunk in request.chunks:
        yield chunk.text
    yield repr(request.arguments)


def _imports_others(text: str) -> bool:
    if "import" not in text:
        return False
    if _HIDDEN_IMPORT.search(text) is not None:
        return True
    names: list[str] = []
    for match in _IMPORTS.finditer(text):
        if match[2] is None:
            names.append(match[1])
        else:
            names += [part.strip().split(" ")[0].split(".")[0] for part in match[2].split(",")]
    return any(name not in _SILENT for name in names)
