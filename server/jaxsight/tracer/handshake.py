"""The tracer's handshake: its versions of Python and JAX, or the reason why it cannot trace.

This imports JAX for the first time in the process.
It must never raise: an environment without a usable JAX is a valid answer.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import replace

from jaxsight.targets.own.plugins import plugins
from jaxsight.wire.messages.replies import VERSION, Hello

OLDEST_JAX = (0, 8)  # the `compat` modules name the private API of no older one

PLATFORM_VARIABLE = "JAX_PLATFORMS"
DEFAULT_PLATFORM = "cpu"
"""Tracing needs no device, and an editor must not take the accelerator from a running program."""


def greet() -> Hello:
    """Import JAX and return the handshake, without initializing a backend."""
    os.environ.setdefault(PLATFORM_VARIABLE, DEFAULT_PLATFORM)
    version = platform.python_version()
    where = f"{sys.executable} (Python {version})"
    hello = Hello(version=VERSION, python=version, executable=sys.executable, pid=os.getpid())
    try:
        import jax
        import jaxlib
    except BaseException as error:  # noqa: BLE001 - incompatible versions may raise even SystemExit
        problem = f"importing jax failed in {where}: {type(error).__name__}: {error}"
        if isinstance(error, ModuleNotFoundError):
            has_none = error.name in ("jax", "jaxlib")
            failed = f"importing jax failed in {where}: {error}"
            problem = f"{where} has no {error.name}" if has_none else failed
        return replace(hello, problem=f"{problem}. {_REMEDY}")
    jax_version: str = getattr(jax, "__version__", "")
    hello = replace(
        hello,
        jax=jax_version,
        jaxlib=getattr(jaxlib, "__version__", ""),
        plugins=plugins() if jax_version else (),
    )
    if tuple(int(part) for part in re.findall(r"\d+", jax_version)[:2]) < OLDEST_JAX:
        oldest = ".".join(map(str, OLDEST_JAX))
        problem = f"{where} has jax {jax_version or 'without a version'}; jaxsight "
        return replace(hello, problem=f"{problem}requires {oldest} or newer. {_REMEDY}")
    return replace(hello, platform=str(jax.config.values["jax_platforms"] or "default"))


_REMEDY = (
    "Install JAX there, or choose another interpreter with the setting `jaxsight.python` "
    "(`python` under [tool.jaxsight] in pyproject.toml)."
)
