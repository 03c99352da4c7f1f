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
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import jax
import jax.nn
import jax.numpy
import jax.random
import numpy as np

from jaxsight.tracer.compat import config, contexts
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.isolation.code_origins import USER

Values = dict[Any, object]
"""Values by name; those of context variables by the variable."""

GONE = object()
"""Represents a name that was removed."""

_environ, _path, _argv = os.environ, sys.path, sys.argv
_path_hooks, _meta_path, _gc_callbacks = sys.path_hooks, sys.meta_path, gc.callbacks


class Part(Protocol):
    """A kind of state, as names and values."""

    def read(self) -> Values: ...

    def write(self, name: Any, value: object) -> None:
        """Set the name; remove it if `value` is `GONE`."""

    def counts(self, before: object, after: object) -> bool:
        """Return whether this change of a name is an effect."""
        return True


class JaxOptions(Part):
    """Options of `jax.config`."""

    def read(self) -> Values:
        return config.values()

    def write(self, name: str, value: object) -> None:
        if value is not GONE:
            config.update(name, value)


class JaxContexts(Part):
    """JAX's contexts of this thread, such as the mesh."""

    def read(self) -> Values:
        return contexts.values()

    def write(self, name: str, value: object) -> None:
        contexts.enter(name, value)


class Environment(Part):
    """Variables of `os.environ`."""

    def read(self) -> Values:
        return dict(_environ)

    def write(self, name: str, value: object) -> None:
        if value is GONE:
            _environ.pop(name, None)
        else:
            _environ[name] = str(value)


class PythonSettings(Part):
    """Settings of Python: import path and hooks, arguments, folder, limits, warnings, locale."""

    def read(self) -> Values:
        try:
            folder = str(Path.cwd())
        except FileNotFoundError:  # it was removed
            folder = ""
        return {
            "path": _as_tuple(sys.path),
            "argv": _as_tuple(sys.argv),
            "folder": folder,
            "recursion": sys.getrecursionlimit(),
            "digits": sys.get_int_max_str_digits(),
            "filters": tuple(warnings.filters),
            "warning": warnings.showwarning,
            "hooks": _as_tuple(sys.path_hooks),
            "finders": _as_tuple(sys.meta_path),
            "collections": _as_tuple(gc.callbacks),
            "locale": locale.setlocale(locale.LC_ALL),
        }

    def write(self, name: str, value: object) -> None:
        match name, value:
            case "path", tuple():
                _path[:] = value
                sys.path = _path
            case "argv", tuple():
                _argv[:] = value
                sys.argv = _argv
            case "folder", str() if value and Path(value).is_dir():
                os.chdir(value)
            case "recursion", int():
                sys.setrecursionlimit(value)
            case "digits", int():
                sys.set_int_max_str_digits(value)
            case "hooks", tuple():
                _path_hooks[:] = value
                sys.path_hooks = _path_hooks
                sys.path_importer_cache.clear()  # entries of other hooks
            case "finders", tuple():
                # No finder is removed: one that a library adds on import is needed by later imports
                # of that library.
                _meta_path[:0] = [finder for finder in value if finder not in _meta_path]
                sys.meta_path = _meta_path
            case "collections", tuple():
                _gc_callbacks[:] = value
                gc.callbacks = _gc_callbacks
            case "locale", str():
                with contextlib.suppress(locale.Error):
                    locale.setlocale(locale.LC_ALL, value)
            case "warning", _:
                warnings.showwarning = value  # type: ignore[assignment]
            case "filters", tuple():
                warnings.filters[:] = value  # type: ignore[index]
                # Leaving the block resets the warnings that modules have shown already.
                with warnings.catch_warnings():
                    pass
            case _:
                pass


class Signals(Part):
    """Handlers of signals."""

    def read(self) -> Values:
        return {number.name: signal.getsignal(number) for number in _SIGNALS}

    def write(self, name: str, value: object) -> None:
        if value is not None and value is not GONE:  # `None`: not set from Python
            signal.signal(signal.Signals[name], value)  # type: ignore[arg-type]


class Attributes(Part):
    """The names of a module that user code may have replaced.

    Submodules that imports add are not an effect.
    """

    def __init__(self, module: ModuleType) -> None:
        self._names = vars(module)

    def read(self) -> Values:
        return dict(self._names)

    def write(self, name: str, value: object) -> None:
        if value is GONE:
            self._names.pop(name, None)
        else:
            self._names[name] = value

    def counts(self, before: object, after: object) -> bool:
        added = after if before is GONE else before if after is GONE else None
        return not isinstance(added, ModuleType)


class ContextVariables(Part):
    """Context variables of the main thread.

    A variable that was first set during a request ends with the request's context.
    """

    def read(self) -> Values:
        return dict(contextvars.copy_context())

    def write(self, name: contextvars.ContextVar[object], value: object) -> None:
        if value is not GONE:
            name.set(value)


class DecimalContext(Part):
    """The decimal context, which is changed in place, so that its variable stays the same."""

    def read(self) -> Values:
        context = decimal.getcontext()
        values: Values = {name: getattr(context, name) for name in _DECIMAL}
        values["traps"] = tuple(context.traps.values())
        return values

    def write(self, name: str, value: object) -> None:
        context = decimal.getcontext()
        if isinstance(value, tuple):
            context.traps = dict(zip(context.traps, value, strict=True))
        else:
            setattr(context, name, value)


class Logging(Part):
    """Settings of the loggers and of the module `logging`."""

    def read(self) -> Values:
        root = logging.root
        loggers = {
            logger: settings
            for logger in root.manager.loggerDict.values()
            if isinstance(logger, logging.Logger)
            and (settings := _settings(logger)) != _UNSET_LOGGER
        }
        return {
            **loggers,
            "level": root.level,
            "handlers": _as_tuple(root.handlers),
            "filters": _as_tuple(root.filters),
            "disable": root.manager.disable,
            "raise": logging.raiseExceptions,
            "last": logging.lastResort,
        }

    def write(self, name: object, value: object) -> None:
        root = logging.root
        match name, value:
            case logging.Logger() as logger, _:
                settings = value if isinstance(value, tuple) else _UNSET_LOGGER
                level, logger.handlers[:], logger.filters[:], logger.propagate, off = settings
                logger.disabled = off
                if level != logger.level:
                    logger.setLevel(level)
            case "level", int():
                root.setLevel(value)
            case "handlers", tuple():
                root.handlers[:] = value
            case "filters", tuple():
                root.filters[:] = value
            case "disable", int():
                logging.disable(value)
            case "raise", _:
                logging.raiseExceptions = bool(value)
            case "last", _:
                logging.lastResort = value  # type: ignore[assignment]
            case _:
                pass


def _settings(logger: logging.Logger) -> tuple[object, ...]:
    handlers, filters = _as_tuple(logger.handlers), _as_tuple(logger.filters)
    return logger.level, handlers, filters, logger.propagate, logger.disabled


_UNSET_LOGGER = (logging.NOTSET, (), (), True, False)


_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def _as_tuple(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list) else ()


_TWISTER = 4 * 624 + 4
"""Bytes of numpy's Mersenne twister: its words and the position in them."""


class RandomGenerators(Part):
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


class CommandLineFlags(Part):
    """Flags of absl that files define, and whether the command line has been parsed (`""`).

    A flag's value is its object, as code keeps that, with what the object holds.
    """

    def read(self) -> Values:
        if (flags := self._all()) is None:
            return {}
        own = {
            name: (flag, flag.value, flag.present)
            for name, flag in flags._flags().items()
            if code_origins.of_module(flags.find_module_defining_flag(name, "")) == USER
        }
        return {"": flags.is_parsed(), **own}

    def write(self, name: str, value: Any) -> None:
        flags = self._all()
        match name, value:
            case _ if flags is None:
                pass
            case "", True:
                flags.mark_as_parsed()
            case "", _:
                flags.__dict__["__flags_parsed"] = False
            case _, (flag, content, present):
                flags._flags()[name] = flag
                flag.value, flag.present = content, present
            case _ if name in flags:
                delattr(flags, name)

    @staticmethod
    def _all() -> Any:
        return getattr(sys.modules.get("absl.flags"), "FLAGS", None)


OPTIONS = JaxOptions()
ENVIRONMENT = Environment()
MODULES = (builtins, jax, jax.numpy, jax.lax, jax.random, jax.nn)
"""Modules whose attributes are parts."""
PARTS: tuple[Part, ...] = (
    OPTIONS,
    JaxContexts(),
    ContextVariables(),
    DecimalContext(),
    RandomGenerators(),
    Logging(),
    ENVIRONMENT,
    PythonSettings(),
    CommandLineFlags(),
    Signals(),
    *map(Attributes, MODULES),
)

_SIGNALS = tuple(s for s in signal.Signals if s.name not in {"SIGKILL", "SIGSTOP"})

State = tuple[Values, ...]
"""The values of each of `PARTS`."""
