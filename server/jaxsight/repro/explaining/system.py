"""What a Python environment has: the versions of JAX, and JAX's own description of the system."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.repro import running
from jaxsight.repro.failures import FINISHED
from jaxsight.workers.own_python import with_packages

_INSTALLED = """
import importlib.metadata as metadata, sys
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
print(version("jax"), version("jaxlib"), sys.version.split()[0], sep="|")
"""
_INFORMATION = "import jax; print(jax.print_environment_info(return_string=True))"
_MOST_SECONDS = 120.0
"""For `import jax` and its devices, chosen: fewer miss a cold disk, more keep the user waiting for
a driver that hangs."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The versions of an environment; empty for what it does not have."""

    jax: str
    jaxlib: str
    python: str


def installed(python: str) -> Installed | None:
    """Return the versions in an interpreter's environment, or None if it does not run."""
    printed = _printed(python, _INSTALLED)
    parts = printed.strip().split("|") if printed is not None else []
    return Installed(*parts) if len(parts) == 3 else None


def information(python: str) -> str:
    """Return what `jax.print_environment_info()` prints; empty if JAX does not start."""
    return (_printed(python, _INFORMATION) or "").strip()


def _printed(python: str, program: str) -> str | None:
    try:
        ran = running.run_own(with_packages(python, "-c", program), timeout=_MOST_SECONDS)
    except OSError:
        return None
    return ran.stdout if ran.failure.kind == FINISHED else None
