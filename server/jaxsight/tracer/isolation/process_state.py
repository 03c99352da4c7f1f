"""The parts of the process's state that influence later code, each as names and values.

These are options and contexts of JAX, context variables (including those of numpy's errors and
print options), the decimal context, the locale, the state of global random number generators, the
environment, the import path and its hooks, flags of the command line, the working folder, warning
filters, logging, and names replaced in `builtins` or in JAX's own namespaces.
All of them are read after every chunk, so reading a part takes microseconds.
Nothing here may rely on user code being well-behaved.

Changes of them by a chunk are its effects, which are recorded to undo them and to repeat them
without a run. They belong to one file: every request starts from the process's baseline, and each
reused chunk applies its effects with its bindings.
"""

from __future__ import annotations

import builtins
import contextlib
import contextvars
import decimal
import gc
import itertools
import locale
import logging
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.nn
import jax.numpy
import jax.random
import numpy as np

from jaxsight.tracer.compat import config, contexts, devices
from jaxsight.tracer.failures import set_warning_filters
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.isolation.code_origins import USER
from jaxsight.tracer.isolation.mutable_contents import GONE

Values = dict[Any, object]
"""Values by name; those of context variables by the variable."""


@dataclass(frozen=True, slots=True)
class Part:
    """A kind of state, as names and values."""

    read: Callable[[], Values]
    write: Callable[[Any, Any], object]
    """Sets a name to a value that was read; removes it if the value is `GONE`."""


Variable = tuple[Callable[[], object], Callable[[Any], object]]
"""A single value: functions that read it and set it again."""


def _entries(names: MutableMapping[Any, Any]) -> Part:
    """Return the part of a mapping."""

    def write(name: object, value: object) -> None:
        if value is GONE:
            names.pop(name, None)
        else:
            names[name] = value

    return Part(lambda: dict(names), write)


def attribute(of: object, name: str) -> Variable:
    return lambda: getattr(of, name), lambda value: setattr(of, name, value)


def _list(of: object, name: str, changed: Callable[[], object] = lambda: None) -> Variable:
    """Return a list's elements; it stays the same object, and `changed` is called afterwards."""
    original = getattr(of, name)

    def write(elements: tuple[object, ...]) -> None:
        original[:] = elements
        setattr(of, name, original)
        changed()

    return lambda: _as_tuple(getattr(of, name)), write


def _as_tuple(value: object) -> tuple[object, ...]:
    # User code may have set it to anything, as `sys.path = None`.
    return tuple(value) if isinstance(value, list) else ()


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # it was removed
        return ""


def _enter_folder(folder: str) -> None:
    if folder and Path(folder).is_dir():
        os.chdir(folder)


_meta_path = sys.meta_path


def _add_finders(finders: tuple[Any, ...]) -> None:
    # No finder is removed: one that a library adds on import is needed by later imports of that
    # library.
    _meta_path[:0] = [finder for finder in finders if finder not in _meta_path]
    sys.meta_path = _meta_path


def _set_locale(name: str) -> None:
    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, name)


_PYTHON: dict[str, Variable] = {
    "path": _list(sys, "path"),
    "argv": _list(sys, "argv"),
    "folder": (_folder, _enter_folder),
    "recursion": (sys.getrecursionlimit, sys.setrecursionlimit),
    "digits": (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    "filters": (lambda: tuple(warnings.filters), set_warning_filters),
    "warning": attribute(warnings, "showwarning"),
    # Entries of other hooks would stay in the cache.
    "hooks": _list(sys, "path_hooks", lambda: sys.path_importer_cache.clear()),
    "finders": (lambda: _as_tuple(sys.meta_path), _add_finders),
    "collections": _list(gc, "callbacks"),
    "locale": (lambda: locale.setlocale(locale.LC_ALL), _set_locale),
    "no_logging": (lambda: logging.root.manager.disable, logging.disable),
    "logging_errors": attribute(logging, "raiseExceptions"),
    "last_handler": attribute(logging, "lastResort"),
}
"""Settings of Python: import path and hooks, arguments, folder, limits, warnings, logging."""

_SIGNALS = tuple(s for s in signal.Signals if s.name not in {"SIGKILL", "SIGSTOP"})


def _set_handler(name: str, handler: Any) -> None:
    if handler is not None and handler is not GONE:  # `None`: not set from Python
        signal.signal(signal.Signals[name], handler)


_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def _decimal_context() -> Values:
    """Return the decimal context, which is changed in place: its variable stays the same."""
    context = decimal.getcontext()
    values: Values = {name: getattr(context, name) for name in _DECIMAL}
    return values | {"traps": context.traps.copy()}


_UNSET_LOGGER = (logging.NOTSET, (), (), True, False)


def _loggers() -> Values:
    """Return the settings of loggers, by the logger."""
    settings = {
        each: (
            *(each.level, _as_tuple(each.handlers), _as_tuple(each.filters)),
            *(each.propagate, each.disabled),
        )
        for each in (logging.root, *logging.root.manager.loggerDict.values())
        if isinstance(each, logging.Logger)
    }
    return {logger: each for logger, each in settings.items() if each != _UNSET_LOGGER}


def _set_logger(logger: logging.Logger, settings: Any) -> None:
    settings = _UNSET_LOGGER if settings is GONE else settings
    level, handlers, filters, logger.propagate, logger.disabled = settings
    # User code may have set them to anything.
    logger.handlers, logger.filters = [*handlers], [*filters]
    if level != logger.level:
        logger.setLevel(level)


_random = random._inst
_numpy: Any = np.random.mtrand._rand
_twister: Any = _numpy._bit_generator


def _random_states() -> Values:
    """Return the states of the global generators of `random` and `numpy.random`."""
    state = _numpy.get_state(legacy=False)
    # Unless `np.random.set_bit_generator` has set another one.
    words = state["state"] if _numpy._bit_generator is _twister else _twister.state["state"]
    numpy = words["key"].tobytes(), words["pos"], state["has_gauss"], state["gauss"]
    return {"random": _random.getstate(), "numpy": numpy}


def _set_random_state(name: str, value: Any) -> None:
    if name == "random":
        _random.setstate(value)
        return
    # After `np.random.set_bit_generator`.
    if _numpy._bit_generator is not _twister:
        np.random.set_bit_generator(_twister)  # type: ignore[attr-defined]
    key, *rest = value
    _numpy.set_state(("MT19937", np.frombuffer(key, np.uint32), *rest))


def _flags() -> Any:
    return getattr(sys.modules.get("absl.flags"), "FLAGS", None)


def _own_flags() -> Values:
    """Return the flags of absl that files define, and whether the command line was parsed (`""`).

    A flag's value is its object, as code keeps that, with what the object holds.
    """
    if (flags := _flags()) is None:
        return {}
    own = {
        name: (flag, flag.value, flag.present)
        for name, flag in flags._flags().items()
        if code_origins.of_module(flags.find_module_defining_flag(name, "")) == USER
    }
    return {"": flags.is_parsed(), **own}


def _set_flag(name: str, value: Any) -> None:
    flags = _flags()
    match name, value:
        case _ if flags is None:
            pass
        case "", _:
            # Not by `unparse_flags`, which sets all flags to their defaults and logs.
            flags.__dict__["__flags_parsed"] = value is True
        case _, (flag, content, present):
            flags._flags()[name] = flag
            flag.value, flag.present = content, present
        case _ if name in flags:
            delattr(flags, name)


OPTIONS = Part(config.values, lambda name, value: value is GONE or config.update(name, value))
ENVIRONMENT = _entries(os.environ)
SIGNALS = Part(lambda: {number.name: signal.getsignal(number) for number in _SIGNALS}, _set_handler)
MODULES = (builtins, jax, jax.numpy, jax.lax, jax.random, jax.nn)
"""Modules whose attributes are parts."""
SETTINGS = (OPTIONS, Part(contexts.values, contexts.enter))
"""Options of `jax.config`, and those of the thread."""
PARTS: tuple[Part, ...] = (
    *SETTINGS,
    # A context variable that was first set during a request ends with the request's context.
    Part(
        lambda: dict(contextvars.copy_context()),
        lambda variable, value: value is GONE or variable.set(value),
    ),
    Part(_decimal_context, lambda name, value: setattr(decimal.getcontext(), name, value)),
    Part(_random_states, _set_random_state),
    Part(_loggers, _set_logger),
    ENVIRONMENT,
    Part(
        lambda: {name: read() for name, (read, _) in _PYTHON.items()},
        lambda name, value: _PYTHON[name][1](value),
    ),
    Part(_own_flags, _set_flag),
    SIGNALS,
    *(_entries(vars(module)) for module in MODULES),
)

State = tuple[Values, ...]
"""The values of each of `PARTS`."""

_serials = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Effects:
    """Changes to each of `PARTS`.

    The serial number distinguishes the effects of a run of a chunk from all others.
    """

    changes: tuple[Values, ...]
    serial: int = field(default_factory=lambda: next(_serials))

    def same_as(self, effects: Effects) -> bool:
        """Return whether both make the same changes."""
        return code_origins.equal(self.changes, effects.changes)

    def apply(self) -> None:
        """Apply the changes to the current process."""
        _write(PARTS, self.changes)


def _write(parts: tuple[Part, ...], changes: Iterable[Values]) -> None:
    for part, values in zip(parts, changes, strict=True):
        for name, value in values.items():
            part.write(name, value)


def capture(parts: tuple[Part, ...] = PARTS) -> State:
    """Return the current state of the process."""
    return tuple(part.read() for part in parts)


def since(before: State) -> tuple[Effects | None, State]:
    """Return the changes since `before` (`None` if there are none), and the current state."""
    after = capture()
    changes = tuple(map(_changes, before, after))
    return (Effects(changes) if any(changes) else None), after


def of_options(before: Values) -> Effects | None:
    """Return the changes of JAX's options since `before`, or `None` if there are none."""
    changes = _changes(before, OPTIONS.read())
    return Effects(tuple(changes if part is OPTIONS else {} for part in PARTS)) if changes else None


def restore(state: State, parts: tuple[Part, ...] = PARTS) -> None:
    """Restore the process to `state`."""
    _write(parts, map(_changes, capture(parts), state))


def heed_variables(before: State, jax_imported: bool) -> None:
    """Apply environment variables set since `before` to JAX.

    This has the same result as if JAX had been imported, or its backend created, afterwards.
    """
    changed = _changes(before[PARTS.index(ENVIRONMENT)], ENVIRONMENT.read())
    for variable, text in changed.items():
        if not isinstance(text, str):
            continue
        # XLA's flags count until there is a backend, JAX's variables until it is imported.
        if variable == "XLA_FLAGS":
            devices.heed_flags(text)
        elif not jax_imported and (option := config.from_variable(variable, text)):
            config.update(*option)


def _changes(before: Values, after: Values) -> Values:
    if code_origins.equal(before, after):
        return {}
    changed: Values = {}
    for name, value in (dict.fromkeys(before, GONE) | after).items():
        old = before.get(name, GONE)
        added = value if old is GONE else old if value is GONE else None
        # Modules that imports add to a package or remove from it are not an effect.
        if not (old is value or code_origins.equal(old, value) or isinstance(added, ModuleType)):
            changed[name] = value
    return changed
