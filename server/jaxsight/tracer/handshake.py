"""The tracer's handshake: its versions of Python and JAX, or the reason why it cannot trace.

This imports JAX for the first time in the process.
It must never raise: an environment without a usable JAX is a valid answer.
"""

from __future__ import annotations

import os
import platform
import re
import sys

from jaxsight.targets.own.plugins import plugins
from jaxsight.wire.messages.replies import VERSION, Hello

OLDEST_JAX = (0, 8)

PLATFORM_VARIABLE = "JAX_PLATFORMS"
DEFAULT_PLATFORM = "cpu"
"""Tracing needs no device, and an editor must not take the accelerator from a running program."""


def greet() -> Hello:
    """Import JAX and return the handshake, without initializing a backend."""
    os.environ.setdefault(PLATFORM_VARIABLE, DEFAULT_PLATFORM)
    try:
        import jax
        import jaxlib
    except ModuleNotFoundError as error:
        if error.name in ("jax", "jaxlib"):
            return _greeting(problem=f"{_interpreter()} has no {error.name}. {_REMEDY}")
        return _greeting(problem=f"importing jax failed in {_interpreter()}: {error}. {_REMEDY}")
    except BaseException as error:  # noqa: BLE001 - incompatible versions may raise even SystemExit
        description = f"{type(error).__name__}: {error}"
        return _greeting(
            problem=f"importing jax failed in {_interpreter()}: {description}. {_REMEDY}"
        )
    jax_version = getattr(jax, "__version__", "")
    jaxlib_version = getattr(jaxlib, "__version__", "")
    if tuple(int(part) for part in re.findall(r"\d+", jax_version)[:2]) < OLDEST_JAX:
        oldest = ".".join(map(str, OLDEST_JAX))
        return _greeting(
            jax_version,
            jaxlib_version,
            problem=f"{_interpreter()} has jax {jax_version or 'without a version'}; jaxsight "
            f"requires {oldest} or newer. " + _REMEDY,
        )
    return _greeting(
        jax_version, jaxlib_version, chosen=str(jax.config.values["jax_platforms"] or "default")
    )


_REMEDY = (
    "Install JAX there, or choose another interpreter with the setting `jaxsight.python` "
    "(`python` under [tool.jaxsight] in pyproject.toml)."
)


def _greeting(jax: str = "", jaxlib: str = "", chosen: str = "", problem: str = "") -> Hello:
    return Hello(
        version=VERSION,
        python=platform.python_version(),
        executable=sys.executable,
        jax=jax,
        jaxlib=jaxlib,
        platform=chosen,
        problem=problem,
        pid=os.getpid(),
        plugins=plugins() if jax else (),
    )


def _interpreter() -> str:
    return f"{sys.executable} (Python {platform.python_version()})"
