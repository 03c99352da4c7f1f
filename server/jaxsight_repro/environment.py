"""What a program ran with: interpreter, versions of packages, variables, options, devices."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata

_PACKAGES = ("jax", "jaxlib", "numpy")
_PLUGINS = ("jax-cuda", "jax-rocm", "libtpu", "jax-metal")

_VARIABLES = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
_IGNORED = (
    "JAX_NUM_CPU_DEVICES", "JAX_COMPILATION_CACHE", "JAX_DUMP", "JAX_LOG", "JAX_TRACEBACK",
    "JAX_PERSISTENT",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProgramEnvironment:
    """What a program ran with.

    Attributes:
        python: the version of Python, such as `3.11.7`.
        packages: the versions of JAX's packages and of NumPy, by name.
        variables: the variables that XLA and JAX read, as they were set.
        options: what `jax.config.update` set, by name.
        system: the operating system, as `platform.platform()` writes it.
    """

    python: str
    packages: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    system: str = ""


def current(options: Mapping[str, object] | None = None) -> ProgramEnvironment:
    """Return the environment of this process, without importing JAX."""
    found: dict[str, str] = {}
    for distribution in metadata.distributions():
        found.setdefault((distribution.metadata["Name"] or "").lower(), distribution.version)
    plugins = [name for name in found if name.startswith(_PLUGINS)]
    packages = {name: found[name] for name in (*_PACKAGES, *plugins) if name in found}
    variables = {
        name: value
        for name, setting in sorted(os.environ.items())
        if (name in _VARIABLES or name.startswith("JAX_")) and not name.startswith(_IGNORED)
        # Without flags that only write files: their paths are the user's.
        if (value := " ".join(w for w in setting.split() if not w.startswith("--xla_dump_")))
    }
    python = ".".join(map(str, sys.version_info[:3]))
    return ProgramEnvironment(python, packages, variables, dict(options or {}), platform.platform())
