"""The options of JAX that a program set, and what else decides what its programs become.

`jax.config.values` and `jax.config.update` are public API in JAX 0.8 to 0.12; the list of options
that have no effect on a program is of these versions (`jax/_src/config.py`).
"""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import jax
from jax._src import xla_bridge

from jaxsight.workers import child
from jaxsight.workers.own_python import with_packages

_update: Callable[[str, object], None] = jax.config.update

_PREFIXES = (
    "jax_compilation_cache", "jax_persistent_cache", "jax_dump", "jax_log", "jax_explain",
    "jax_traceback", "jax_tracer_error", "jax_include", "jax_raise_persistent", "jax_coordination",
    "jax_profiler", "jax_hlo_source", "jax_pprint",
)  # fmt: skip
"""Options about logs, dumps and caches."""


_DEVICES = "jax_num_cpu_devices"
_FLAGS = "XLA_FLAGS"

_FORCED = re.compile(r"--?xla_force_host_platform_device_count=(\d+)")


def values() -> dict[str, object]:
    """Return every option with the value that applies in this thread now."""
    return dict(jax.config.values)


def restore(options: Mapping[str, object]) -> None:
    """Give options the values that they had in `values()`."""
    for name, value in values().items():
        if name in options and value != options[name]:
            _update(name, options[name])


def at_start() -> dict[str, object]:
    """Return the options before a program changes any; of devices, what `XLA_FLAGS` says."""
    return {**values(), _DEVICES: _flagged()}


def _flagged() -> int:
    """Return how many simulated devices `XLA_FLAGS` asks for."""
    forced = _FORCED.findall(os.environ.get(_FLAGS, ""))
    return int(forced[-1]) if forced else 1


@functools.cache
def defaults() -> dict[str, object]:
    """Return every option with the value that it has in a new process."""
    own = with_packages(sys.executable, "-c", "import jax; print(dict(jax.config.values))")
    done = child.completed(own)
    names = values()
    known = {
        name: ast.literal_eval(text) for name, text in _ITEM.findall(done.stdout) if name in names
    }
    return {**known, _DEVICES: _flagged()}


_ITEM = re.compile(r"'(jax_\w+)': (True|False|None|-?[\d.]+|'[^']*')")
"""An option in a printed dictionary, if its value is a literal."""


def changed(baseline: Mapping[str, object]) -> dict[str, object]:
    """Return the options that were changed since a baseline and that a file can set again.

    The number of simulated devices is among them however it was set, unless `XLA_FLAGS` had it
    when JAX was imported, which the file sets.
    """
    now = values()
    option: Any = now.get(_DEVICES, -1)
    devices = option if option > 0 else _flagged()
    if are_initialized() and jax.default_backend() == "cpu":  # which initializes none
        devices = jax.device_count()
    return {
        name: value
        for name, value in {**now, _DEVICES: devices}.items()
        if name in baseline
        and not name.startswith(_PREFIXES)
        and value != baseline[name]
        and _is_literal(value)
    }


def simulate_devices(count: int) -> None:
    """Change how many simulated devices this process has, if it has any and uses none yet."""
    options, variables = with_devices(
        {_DEVICES: values().get(_DEVICES, -1)}, {_FLAGS: os.environ.get(_FLAGS, "")}, count
    )
    if _FLAGS in os.environ:
        os.environ[_FLAGS] = variables.get(_FLAGS, "")
    option: Any = options.get(_DEVICES, 1)
    if _DEVICES in values() and values()[_DEVICES] != -1:
        _update(_DEVICES, option)


def with_devices(
    options: Mapping[str, object], variables: Mapping[str, str], count: int
) -> tuple[dict[str, object], dict[str, str]]:
    """Return options and variables that ask for `count` devices, where they ask for several."""
    is_flag = bool(_FORCED.search(variables.get(_FLAGS, "")))
    asked = {_DEVICES: count} if count > 1 and _DEVICES in options and not is_flag else {}
    flag = f"--xla_force_host_platform_device_count={count}" if count > 1 else ""
    changed = {
        name: _FORCED.sub(flag, value).strip() if name == _FLAGS else value
        for name, value in variables.items()
    }
    kept = {name: value for name, value in options.items() if name != _DEVICES}
    return {**kept, **asked}, {
        name: value for name, value in changed.items() if value or name != _FLAGS
    }


def apply(options: Mapping[str, object]) -> None:
    """Set options, as for tracing a program again, but for those that check what is computed."""
    for name, value in options.items():
        if not name.startswith(("jax_debug", "jax_disable_jit", "jax_enable_checks")):
            _update(name, value)


def _is_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError):
        return False


def are_initialized() -> bool:
    """Return whether a backend was initialized in this process."""
    return bool(xla_bridge.backends_are_initialized())
