"""The parts of the process's state that influence later code, each as names and values.

These are options and contexts of JAX, context variables (including those of numpy's errors and
print options), the decimal context, the locale, the state of global random number generators, the
environment, the import path and its hooks, flags of the command line, the working folder, warning
filters, logging, and names replaced in `builtins` or in JAX's own namespaces.
All of them are read after every chunk, so reading a part takes microseconds.
Nothing here may rely on user code being well-behaved.
"""

from __future__ import annotations

import _random
import builtins
import contextlib
import contextvars
import ctypes
import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import jax.nn
import jax.numpy
import jax.random
import numpy as np

from jaxsight.tracer.compat import config, contexts
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
    counts: Callable[[object, object], bool] = lambda before, after: True
    """Whether a change of a name is an effect."""


Variable = tuple[Callable[[], object], Callable[[Any], object]]
"""A single value: functions that read it and set it again."""


def _fixed(variables: Mapping[str, Variable]) -> Part:
    """Return the part of variables that can be set, but not removed."""
    return Part(
        lambda: {name: read() for name, (read, _) in variables.items()},
        lambda name, value: variables[name][1](value),
    )


def _entries(names: MutableMapping[Any, Any]) -> Part:
    """Return the part of a mapping. Modules that imports add to one are not an effect."""

    def write(name: object, value: object) -> None:
        if value is GONE:
            names.pop(name, None)
        else:
            names[name] = value

    def counts(before: object, after: object) -> bool:
        added = after if before is GONE else before if after is GONE else None
        return not isinstance(added, ModuleType)

    return Part(lambda: dict(names), write, counts)


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


def _set_option(name: str, value: object) -> None:
    if value is not GONE:
        config.update(name, value)


def _set_locale(name: str) -> None:
    with contextlib.suppress(locale.Error):
        locale.setlocale(locale.LC_ALL, name)


def _set_warning_filters(filters: tuple[Any, ...]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    # Leaving the block resets the warnings that modules have shown already.
    with warnings.catch_warnings():
        pass


_PYTHON: dict[str, Variable] = {
    "path": _list(sys, "path"),
    "argv": _list(sys, "argv"),
    "folder": (_folder, _enter_folder),
    "recursion": (sys.getrecursionlimit, sys.setrecursionlimit),
    "digits": (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    "filters": (lambda: tuple(warnings.filters), _set_warning_filters),
    "warning": attribute(warnings, "showwarning"),
    # Entries of other hooks would stay in the cache.
    "hooks": _list(sys, "path_hooks", lambda: sys.path_importer_cache.clear()),
    "finders": (lambda: _as_tuple(sys.meta_path), _add_finders),
    "collections": _list(gc, "callbacks"),
    "locale": (lambda: locale.setlocale(locale.LC_ALL), _set_locale),
}
"""Settings of Python: import path and hooks, arguments, folder, limits, warnings, locale."""

_LOGGING: dict[str, Variable] = {
    "level": (lambda: logging.root.level, logging.root.setLevel),
    "handlers": _list(logging.root, "handlers"),
    "filters": _list(logging.root, "filters"),
    "disable": (lambda: logging.root.manager.disable, logging.disable),
    "raise": attribute(logging, "raiseExceptions"),
    "last": attribute(logging, "lastResort"),
}
"""Settings of the root logger and of the module `logging`."""

_SIGNALS = tuple(s for s in signal.Signals if s.name not in {"SIGKILL", "SIGSTOP"})


def _set_handler(name: str, handler: Any) -> None:
    if handler is not None and handler is not GONE:  # `None`: not set from Python
        signal.signal(signal.Signals[name], handler)


_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def _decimal_context() -> Values:
    """Return the decimal context, which is changed in place: its variable stays the same."""
    context = decimal.getcontext()
    values: Values = {name: getattr(context, name) for name in _DECIMAL}
    return values | {"traps": tuple(context.traps.values())}


def _set_decimal_context(name: str, value: Any) -> None:
    context = decimal.getcontext()
    if name == "traps":
        context.traps = dict(zip(context.traps, value, strict=True))
    else:
        setattr(context, name, value)


_UNSET_LOGGER = (logging.NOTSET, (), (), True, False)


def _loggers() -> Values:
    """Return the settings of loggers, by the logger."""
    return {
        logger: settings
        for logger in logging.root.manager.loggerDict.values()
        if isinstance(logger, logging.Logger)
        and (settings := _settings_of(logger)) != _UNSET_LOGGER
    }


def _settings_of(logger: logging.Logger) -> tuple[object, ...]:
    handlers, filters = _as_tuple(logger.handlers), _as_tuple(logger.filters)
    return logger.level, handlers, filters, logger.propagate, logger.disabled


def _set_logger(logger: logging.Logger, settings: Any) -> None:
    settings = _UNSET_LOGGER if settings is GONE else settings
    level, logger.handlers[:], logger.filters[:], logger.propagate, logger.disabled = settings
    if level != logger.level:
        logger.setLevel(level)


_TWISTER = 4 * 624 + 4
"""Bytes of numpy's Mersenne twister: its words and the position in them."""


class _RandomGenerators:
    """The states of the global generators of `random` and `numpy.random`.

    They are read completely only if they have changed.
    """

    def __init__(self) -> None:
        self._python: Any = random._inst
        self._numpy: Any = np.random.mtrand._rand
        self._cached: dict[str, tuple[object, object]] = {}
        generator = self._numpy._bit_generator
        self._generator = generator
        # The object's own memory, up to its type's size: the words of the Mersenne twister.
        header = object.__basicsize__
        self._words = id(self._python) + header, _random.Random.__basicsize__ - header
        self._numpy_words = generator.ctypes.state_address, _TWISTER

    def read(self) -> Values:
        words = ctypes.string_at(*self._words), self._python.gauss_next
        return {
            "random": self._state("random", words, self._python.getstate),
            "numpy": self._state("numpy", self._numpy_mark(), self._numpy_state),
        }

    def write(self, name: str, value: object) -> None:
        match name, value:
            case "random", tuple():
                self._python.setstate(value)
            case "numpy", (legacy, key, *rest) if isinstance(key, bytes):
                # After `np.random.set_bit_generator`.
                if self._numpy._bit_generator is not self._generator:
                    self._numpy._initialize_bit_generator(self._generator)
                self._numpy.set_state((legacy, np.frombuffer(key, np.uint32), *rest))
            case _:
                pass

    def _state(self, name: str, mark: object, read: Callable[[], object]) -> object:
        cached = self._cached.get(name)
        if cached is None or cached[0] != mark:
            cached = self._cached[name] = mark, read()
        return cached[1]

    def _numpy_mark(self) -> object:
        """Return a value that differs if the state does.

        A normal number that is cached for the next draw is not part of the words.
        """
        cached = self._cached.get("numpy")
        keeps_draw = cached is not None and isinstance(cached[1], tuple) and cached[1][3]
        words = ctypes.string_at(*self._numpy_words)
        return words, self._numpy.get_state()[3:] if keeps_draw else 0

    def _numpy_state(self) -> object:
        legacy, key, *position = self._numpy.get_state()
        return legacy, key.tobytes(), *position


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
        case "", True:
            flags.mark_as_parsed()
        case "", _:
            # Not by `unparse_flags`, which sets all flags to their defaults and logs.
            flags.__dict__["__flags_parsed"] = False
        case _, (flag, content, present):
            flags._flags()[name] = flag
            flag.value, flag.present = content, present
        case _ if name in flags:
            delattr(flags, name)


_random_generators = _RandomGenerators()

OPTIONS = Part(config.values, _set_option)
ENVIRONMENT = _entries(os.environ)
SIGNALS = Part(lambda: {number.name: signal.getsignal(number) for number in _SIGNALS}, _set_handler)
MODULES = (builtins, jax, jax.numpy, jax.lax, jax.random, jax.nn)
"""Modules whose attributes are parts."""
PARTS: tuple[Part, ...] = (
    OPTIONS,
    Part(contexts.values, contexts.enter),
    # A context variable that was first set during a request ends with the request's context.
    Part(
        lambda: dict(contextvars.copy_context()),
        lambda variable, value: value is GONE or variable.set(value),
    ),
    Part(_decimal_context, _set_decimal_context),
    Part(_random_generators.read, _random_generators.write),
    Part(_loggers, _set_logger),
    _fixed(_LOGGING),
    ENVIRONMENT,
    _fixed(_PYTHON),
    Part(_own_flags, _set_flag),
    SIGNALS,
    *(_entries(vars(module)) for module in MODULES),
)

State = tuple[Values, ...]
"""The values of each of `PARTS`."""
