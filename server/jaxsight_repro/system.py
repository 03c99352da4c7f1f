"""JAX's own description of the system that a Python environment runs on."""

from __future__ import annotations

from pathlib import Path

from jaxsight.workers.own_python import with_packages
from jaxsight_repro import running
from jaxsight_repro.failures import FINISHED

_INFORMATION = "import jax; print(jax.print_environment_info(return_string=True))"
_MOST_SECONDS = 120.0
"""For `import jax` and its devices, chosen: fewer miss a cold disk, more keep the user waiting for
a driver that hangs."""


def information(python: str) -> str:
    """Return what `jax.print_environment_info()` prints; empty if JAX does not start."""
    own = with_packages(python, "-c", _INFORMATION)
    try:
        ran = running.run_command(
            own.command,
            timeout=_MOST_SECONDS,
            environment=own.environment,
            folder=Path(own.folder),
        )
    except OSError:
        return ""
    return ran.stdout.strip() if ran.failure.kind == FINISHED else ""
