"""Describes each program that this process compiles, and logs it.

JAX is imported when this module is.
"""

from __future__ import annotations

import atexit
import enum
import inspect
import os
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from types import FrameType
from typing import Any
from zlib import crc32

import jax

from jaxsight.files.appended import AppendedRecords
from jaxsight.profiles.places import CodePlace, library_of
from jaxsight.recording.programs import ENDING, LARGEST
from jaxsight.recording.programs.compat import compiling
from jaxsight.recording.programs.compat.compiling import Definition, definition
from jaxsight.recording.programs.record import RunProgram
from jaxsight.wire.frames import dump
from jaxsight.wire.messages.compiling import Memory

# What a compiled function was called with: types of its arguments, and its static arguments.
#
# This module uses only the standard library.

_LONGEST_SIGNATURE = 200
"""Characters of a static argument, a choice: a line."""
_MOST = 50
"""Elements of a static tuple that are written, a choice."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def static_arguments(
    function: object,
    positions: Sequence[int],
    names: Sequence[str],
    arguments: Sequence[object],
    keywords: Mapping[str, object],
) -> dict[str, str]:
    """Return the static arguments of a call, as text by name.

    Args:
        function: the function that is compiled.
        positions: its static positions (`static_argnums`), which may be negative.
        names: its static names (`static_argnames`).
        arguments: the positional arguments of the call.
        keywords: the arguments of the call by name.
    """
    found: dict[str, str] = {}
    parameters = _parameters(function)
    for position in positions:
        at = position + len(arguments) if position < 0 else position
        if 0 <= at < len(arguments):
            name = parameters[at] if at < len(parameters) else f"argument {at}"
            found[name] = written(arguments[at])
    found |= {name: written(keywords[name]) for name in names if name in keywords}
    return found


def _parameters(function: object) -> list[str]:
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each.name for each in signature.parameters.values() if each.kind in kinds]


def written(value: object) -> str:
    """Return a static argument as text, without running code of the user's but its `__hash__`.

    JAX calls that, too, as static arguments are keys of its cache. A long text ends with a digest,
    so that it differs from others with the same beginning.
    """
    text = _written(value, 3)
    if len(text) <= _LONGEST_SIGNATURE:
        return text
    return f"{text[:_LONGEST_SIGNATURE]}… #{crc32(text.encode('utf-8', 'replace')):08x}"


def _written(value: object, depth: int) -> str:
    if type(value) in _PLAIN:
        # No number of JAX's is that long, and Python refuses to write longer ones.
        if isinstance(value, int) and value.bit_length() > 1000:
            return f"int of {value.bit_length()} bits"
        return repr(value)
    if type(value) is tuple and depth:
        return f"({', '.join(_written(each, depth - 1) for each in islice(value, _MOST))})"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type) or inspect.isroutine(value):
        name = getattr(value, "__qualname__", type(value).__name__)
        return f"{getattr(value, '__module__', '')}.{name}".removeprefix("builtins.")
    try:
        mark = f" #{hash(value) & 0xFFFFFF:06x}"
    except Exception:  # noqa: BLE001 - the user's own `__hash__`
        mark = ""
    return f"{type(value).__name__}{mark}"


class Identities:
    """Numbers functions, so that one that was created again is another one.

    A function that is gone keeps its number, which `id` does not.
    """

    def __init__(self) -> None:
        self._numbers: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._next = 1

    def of(self, function: object) -> int:
        """Return the number of a function, 0 if it cannot be known again."""
        try:
            if (number := self._numbers.get(function)) is None:
                number = self._numbers[function] = self._next
                self._next += 1
        except TypeError:  # it has no weak references, or no hash
            return 0
        return number


_TRACED = "/jax/core/compile/jaxpr_trace_duration"
_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_HIT = "/jax/compilation_cache/cache_hits"
_SAVED = "/jax/compilation_cache/compile_time_saved_sec"
"""Events of `jax.monitoring` in JAX 0.8 to 0.12 (`dispatch.py`, `compiler.py`)."""
_KEPT = 512
"""Modules and names that are remembered between the stages of a compile, a choice."""
_CALLERS = 3
"""Lines of the user's that called, a choice: the innermost ones say what it is."""
_MOST_EQUATIONS = 3000
"""Equations of a jaxpr whose text is kept, a choice: printing more takes longer than 0.2 s."""
_LONGEST = 8 << 20
"""Characters of HLO that are kept, a choice: about 20,000 instructions."""
_RANKS = (
    "JAX_PROCESS_ID",
    "RANK",
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "PYTEST_XDIST_WORKER",
)
"""Variables with which launchers name a process: JAX, torchrun, Open MPI, Slurm, pytest-xdist."""


@dataclass(slots=True)
class _Lowered:
    jaxpr: weakref.ref[Any]
    """A strong reference would keep the arrays of a program that the user dropped."""
    shardings: tuple[str, ...]


@dataclass(slots=True)
class _Before:
    begin: float
    saved: list[float] = field(default_factory=list)
    hits: int = 0


class _Thread(threading.local):
    """What a thread does at the moment."""

    def __init__(self) -> None:
        self.durations: OrderedDict[tuple[str, str], float] = OrderedDict()
        """The last duration of an event, by event and function."""
        self.compiling: _Before | None = None


class Collector:
    """Logs what JAX compiles in this process."""

    def __init__(self, folder: str) -> None:
        self._log = AppendedRecords(folder, ENDING, LARGEST)
        self._modules: OrderedDict[int, _Lowered] = OrderedDict()
        self._thread = _Thread()
        self._identities = Identities()
        self._has_failed = False

    def begin(self) -> None:
        """Begin to log, also in processes that are forked from this one."""
        compiling.watch(self, os.path.dirname(__file__))  # noqa: PTH120
        compiling.listen(self._took, self._happened)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)
        atexit.register(self._end)
        self._introduce()

    def _introduce(self) -> None:
        variables = {name: os.environ[name] for name in _RANKS if name in os.environ}
        process = {
            "pid": os.getpid(),
            "parent": os.getppid(),
            "command": sys.orig_argv[:50],
            "began": time.time(),
            "ranks": variables,
            "jax": jax.__version__,
            "python": ".".join(map(str, sys.version_info[:3])),
        }
        self._log.append({"process": process})

    def _forked(self) -> None:
        self._log.begin()
        self._introduce()

    def _end(self) -> None:
        self._log.append({"end": time.time()})

    def _took(self, event: str, seconds: float, **details: Any) -> None:
        thread = self._thread
        if event in (_TRACED, _LOWERED):
            name = str(details.get("fun_name", ""))
            thread.durations[event, name] = seconds
            thread.durations.move_to_end((event, name))
            if len(thread.durations) > _KEPT:
                thread.durations.popitem(last=False)
        elif event == _SAVED and thread.compiling is not None:
            thread.compiling.saved.append(seconds)

    def _happened(self, event: str, **_: object) -> None:
        if event == _HIT and self._thread.compiling is not None:
            self._thread.compiling.hits += 1

    def lowered(self, module: object, lowered: compiling.LoweredJaxpr) -> None:
        """Remember what a module was lowered from."""
        self._modules[id(module)] = _Lowered(weakref.ref(lowered.jaxpr), lowered.shardings)
        if len(self._modules) > _KEPT:
            self._modules.popitem(last=False)

    def compiling(self) -> object:
        """Begin to measure a compile."""
        self._thread.compiling = before = _Before(time.perf_counter())
        return before

    def compiled(self, before: object, module: object, backend: object, outcome: object) -> None:
        """Log a program."""
        now = time.perf_counter()
        assert isinstance(before, _Before)
        self._thread.compiling = None
        name = compiling.name_of(module)
        lowered = self._modules.get(id(module))
        jaxpr = lowered.jaxpr() if lowered is not None else None
        shardings = lowered.shardings if lowered is not None and jaxpr is not None else ()
        defined = definition(jaxpr) if jaxpr is not None else Definition(name.removeprefix("jit_"))
        count = compiling.equations(jaxpr) if jaxpr is not None else 0
        function, durations = defined.name, self._thread.durations
        frame = compiling.caller()
        number, static = self._call(frame, function)
        error, hlo, memory = "", "", Memory()
        platform, device, devices, index = "", "", 0, None
        if isinstance(outcome, Exception):
            error = f"{type(outcome).__name__}: {outcome}"[:2000]
        else:
            hlo, memory = compiling.optimized_hlo(outcome), compiling.memory(outcome)
            platform, device, devices, index = compiling.devices(backend, outcome)
        program = RunProgram(
            name=function,
            defined=CodePlace(defined.file, defined.line) if defined.file else None,
            called=_places(frame),
            arguments=defined.arguments,
            results=defined.results,
            static=tuple(static.items()),
            shardings=shardings if any(shardings) else (),
            context=compiling.context(),
            function=number,
            is_transformed=compiling.is_transformed(_before_user(frame)),
            at=time.time(),
            trace=durations.pop((_TRACED, function), None),
            lower=durations.pop((_LOWERED, f"jit({function})"), None),
            compile=now - before.begin,
            is_cached=before.hits > 0,
            saved=sum(before.saved),
            memory=memory,
            platform=platform,
            device=device,
            devices=devices,
            hlo=hlo if len(hlo) <= _LONGEST else "",
            jaxpr=str(jaxpr) if jaxpr is not None and count <= _MOST_EQUATIONS else "",
            equations=count,
            error=error,
        )
        self._log.append({"program": dump(program).decode(), "index": index})

    def failed(self, error: Exception) -> None:
        """Log an error of ours, the first one."""
        if not self._has_failed:
            self._has_failed = True
            self._log.append({"error": f"{type(error).__name__}: {error}"[:300]})

    def _call(self, frame: FrameType, function: str) -> tuple[int, dict[str, str]]:
        """Return the number of the function that is called, and its static arguments."""
        call = compiling.call(frame)
        if call is None or getattr(call.function, "__name__", "") != function:
            return 0, {}
        static = static_arguments(
            call.function, call.static_positions, call.static_names, call.arguments, call.keywords
        )
        return self._identities.of(call.function), static


def _is_users(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return not library_of(file) and not file.startswith("<frozen")


def _before_user(frame: FrameType | None) -> Iterator[FrameType]:
    """Return the frames outwards until the first one of the user's."""
    return takewhile(lambda each: not _is_users(each), compiling.outwards(frame))


def _places(frame: FrameType | None) -> tuple[CodePlace, ...]:
    """Return the innermost lines of the user's."""
    own = islice(filter(_is_users, compiling.outwards(frame)), _CALLERS)
    return tuple(
        CodePlace(each.f_code.co_filename, each.f_lineno, each.f_code.co_qualname) for each in own
    )
