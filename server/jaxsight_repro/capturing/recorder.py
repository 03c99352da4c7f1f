"""Writes what is about to run into the folder of a case, and notes what failed.

Nothing here may raise into the user's program, change its results or compile anything.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pickle
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jax
import numpy as np

from jaxsight.wire.meshes import Mesh
from jaxsight_repro import meshes
from jaxsight_repro.capturing import case
from jaxsight_repro.compat import configuration, pickling
from jaxsight_repro.failures import Raised, raised_of
from jaxsight_repro.values import ConcreteValue, array_of, has_nan, value_of
from jaxsight_source.compat.jaxpr_types import Primitive
from jaxsight_source.compat.locations import locations
from jaxsight_source.compat.staging import is_jaxpr, opened

_log = logging.getLogger(__name__)


class CaseRecorder:
    """Observes executions (`compat.executions.Observer`) for one case."""

    def __init__(
        self,
        folder: Path,
        baseline: Mapping[str, object],
        tree: Callable[[], object],
        *,
        finds_nan: bool = False,
    ) -> None:
        """Write to a folder.

        Args:
            folder: the case.
            baseline: the options of JAX before the program changed any.
            tree: returns the tree of calls of this thread.
            finds_nan: whether to look for the first program that makes a NaN.
        """
        self.folder = folder
        self.failures: list[tuple[int, BaseException]] = []
        """The programs that raised, with the exceptions."""
        self.nan_program: int | None = None
        self._finds_nan = finds_nan
        self._running: Mapping[str, object] = {}
        self._nan: tuple[Mapping[str, object], list[ConcreteValue]] | None = None
        self._baseline = baseline
        self._tree = tree
        self._numbers: dict[object, tuple[int, object]] = {}
        """The number of each program, by key; with what its key is the id of."""
        self._current = 0
        self._is_first = False
        self._values: list[ConcreteValue] = []
        self._mesh: Mesh | None = None
        self._lock = threading.Lock()
        (folder / case.PROGRAMS).mkdir(parents=True, exist_ok=True)
        self._slot = case.SlotFile(folder, case.CURRENT)
        self._tracing = case.SlotFile(folder, case.TRACING)
        self.within = threading.local()
        self.host_calls = HostCalls(folder, self.within)
        self.calling = self.host_calls.calling

    def starting(
        self, primitive: Primitive, arguments: Sequence[object], parameters: Mapping[str, object]
    ) -> None:
        """Write the primitive, on its first execution, and its arguments."""
        self.host_calls.begin()
        self.traced(False)
        with self._lock:
            try:
                self._write(primitive, arguments, parameters)
            except CANNOT_WRITE as error:
                self._slot.write(b"")  # not the execution before
                _log.debug("%s cannot be written: %s", primitive.name, error)

    def traced(self, starts: bool) -> None:
        """Note that JAX starts to trace, or that it executes or has returned."""
        if starts:
            with contextlib.suppress(ValueError):
                self._mesh = meshes.current()
        with contextlib.suppress(OSError):
            self._tracing.mark(starts)

    def _write(
        self, primitive: Primitive, arguments: Sequence[object], parameters: Mapping[str, object]
    ) -> None:
        key, kept = _key(primitive, arguments, parameters)
        known = self._numbers.get(key)
        self._current = number = known[0] if known else len(self._numbers) + 1
        self._is_first = known is None
        self._running = parameters
        self._values = [value_of(argument) for argument in arguments]
        values = pickle.dumps(self._values, pickle.HIGHEST_PROTOCOL)
        if known is None:
            options = configuration.changed(self._baseline)
            program = pickling.dumps(options, meshes.current(), (primitive, dict(parameters)))
            case.write(self.folder, case.of_program(number, "pickle"), program)
            case.write(self.folder, case.of_program(number, "first"), values)
            self._numbers[key] = (number, kept)
            if primitive.name == "jit":
                self.write_tree(self._tree(), case.of_program(number, "tree"))
        self._slot.write(pickle.dumps((number, values), pickle.HIGHEST_PROTOCOL))

    def close(self) -> None:
        """Close the case's open files."""
        self._slot.close()
        self._tracing.close()
        self.host_calls.close()

    def write_tree(self, tree: object, name: str) -> None:
        """Write a tree of calls, with the options that apply now."""
        if tree is not None:
            with contextlib.suppress(*CANNOT_WRITE):
                options = configuration.changed(self._baseline)
                case.write(self.folder, name, pickling.dumps(options, self._mesh, tree))

    def failed(self, error: BaseException) -> None:
        """Note that the execution in flight raised."""
        with self._lock:
            self.failures.append((self._current, error))
            with contextlib.suppress(OSError):
                written = case.read_slot(self.folder, case.CURRENT)
                case.write(self.folder, case.of_program(self._current, "failed"), written)
            self._keep_callbacks()

    def nan_line(self) -> str:
        """Return the user's line of the operation that made the first NaN, as `file:line`.

        The program runs once more, one operation at a time; empty if none makes a NaN then.
        """
        if self._nan is None or "jaxpr" not in self._nan[0]:
            return ""
        from jaxsight_repro.capturing.nan_places import first_nan

        parameters, values = self._nan
        with contextlib.suppress(Exception):  # whatever operations raise when they run alone
            equation = first_nan(opened(parameters["jaxpr"]), list(map(array_of, values)))
            for place in () if equation is None else locations(equation):
                if not case.is_installed(place.file):
                    return f"{place.file}:{place.line}"
        return ""

    def _keep_callbacks(self) -> None:
        """Keep what callbacks did during the execution that has ended."""
        content = self.host_calls.content()
        if content:
            with contextlib.suppress(OSError):
                case.write(self.folder, case.of_program(self._current, "callbacks"), content)

    def finished(self, results: object) -> None:
        """Wait for the results, so that what fails asynchronously fails in its own execution."""
        leaves = [leaf for leaf in jax.tree.leaves(results) if isinstance(leaf, jax.Array)]
        try:
            for leaf in leaves:
                leaf.block_until_ready()
        except Exception as error:  # noqa: BLE001 - the program meets it itself
            self.failed(error)
            return
        if self._is_first:
            self._keep_callbacks()
        if not self._finds_nan or self.nan_program is not None:
            return
        if any(map(_has_nan, leaves)) and not any(_has_nan(each.data) for each in self._values):
            self.failed(ArithmeticError("NaN"))
            self.failures.pop()
            self.nan_program = self._current
            self._nan = self._running, list(self._values)


def _key(
    primitive: Primitive, arguments: Sequence[object], parameters: Mapping[str, object]
) -> tuple[object, object]:
    """Return what two executions of the same program share, and what must live for it."""
    types = tuple(str(jax.typeof(argument)) for argument in arguments)
    parts: list[object] = []
    for name, value in parameters.items():
        inner = value if isinstance(value, tuple) else (value,)
        is_program = any(map(is_jaxpr, inner))
        parts.append((name, tuple(map(id, inner)) if is_program else str(value)))
    return (primitive.name, types, *parts), parameters


def _has_nan(array: object) -> bool:
    with contextlib.suppress(RuntimeError):  # it was donated
        return has_nan(array)
    return False


_MOST_BYTES = 64 << 20
"""Bytes of a log after which only exceptions are recorded, a choice: the first calls matter."""

CANNOT_WRITE = (pickle.PicklingError, TypeError, ValueError, AttributeError, RuntimeError, OSError)
"""What pickling a user's values, or the file of a case, may raise."""

Results = tuple[ConcreteValue, ...]


@dataclass(frozen=True, slots=True)
class _Record:
    """A part of the log: that the call of this number of a function started, or how it ended."""

    name: str
    call: int
    results: Results | None = None
    raised: Raised | None = None
    is_same: bool = False
    """Whether the call returned what the one before it returned."""


@dataclass(slots=True)
class Outcomes:
    """What the calls of a function came to, by the number of the call; others never ended.

    Attributes:
        started: the number of calls.
        returned: the results of calls; a missing one returned what the call before did.
        raised: the exceptions of calls.
        unfinished: the calls that did not end.
    """

    started: int = 0
    returned: dict[int, Results] = field(default_factory=dict)
    raised: dict[int, Raised] = field(default_factory=dict)
    unfinished: set[int] = field(default_factory=set)

    @property
    def fails(self) -> bool:
        """Whether a call raised an exception, or did not end."""
        return bool(self.raised or self.unfinished)


class HostCalls:
    """Writes the log of one case."""

    def __init__(self, folder: Path, within: threading.local) -> None:
        """Write to the folder of a case; `within.execution` says that a thread executes."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        self._descriptor = os.open(folder / case.CALLBACKS, flags, 0o600)
        self._within = within
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._last: dict[str, bytes] = {}
        self._written = 0
        self.interrupted = False
        """Whether a callback was interrupted; the exception that JAX raises then is another."""

    def begin(self) -> None:
        """Begin the log of another execution."""
        with self._lock:
            self._counts.clear()
            self._last.clear()
            if self._written:
                self._written = 0
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, 0)

    def content(self) -> bytes:
        """Return the log of the execution in flight."""
        with self._lock, contextlib.suppress(OSError):
            return os.pread(self._descriptor, self._written, 0)
        return b""

    def close(self) -> None:
        """Close the log; calls that still run are not recorded."""
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1

    @contextlib.contextmanager
    def calling(self, name: str) -> Iterator[Callable[[object], None]]:
        """Record a call of a function; what the function executes itself is not captured."""
        before = getattr(self._within, "execution", False)
        self._within.execution = True
        with self._lock:
            call = self._counts.get(name, 0)
            self._counts[name] = call + 1
            self._append(_Record(name, call))
        try:
            yield lambda results: self._returned(name, call, results)
        except KeyboardInterrupt:  # it did not end by itself
            self.interrupted = True
            raise
        except BaseException as error:
            with self._lock:
                self._append(_Record(name, call, raised=raised_of(error)), always=True)
            raise
        finally:
            self._within.execution = before

    def _returned(self, name: str, call: int, results: object) -> None:
        """Record the results of a call."""
        with self._lock, contextlib.suppress(*CANNOT_WRITE):
            packed = tuple(map(_value, results if isinstance(results, Sequence) else (results,)))
            data = pickle.dumps(packed, pickle.HIGHEST_PROTOCOL)
            is_same = self._last.get(name) == data
            self._last[name] = data
            self._append(_Record(name, call, None if is_same else packed, is_same=is_same))

    def _append(self, record: _Record, *, always: bool = False) -> None:
        if self._written <= _MOST_BYTES or always:
            with contextlib.suppress(*CANNOT_WRITE):
                data = pickle.dumps(record, pickle.HIGHEST_PROTOCOL)
                self._written += os.write(self._descriptor, data)


def _value(leaf: object) -> ConcreteValue:
    """Return a result of a callback, as NumPy sees it."""
    if isinstance(leaf, (bool, int, float, complex, str, bytes)):
        return ConcreteValue(leaf, "python")
    try:
        array = np.array(leaf)
    except Exception:  # noqa: BLE001 - whatever the object does
        return ConcreteValue(type(leaf).__name__, "object")
    if array.dtype == object:
        return ConcreteValue(type(leaf).__name__, "object")
    return ConcreteValue(array, "numpy")


def read(content: bytes) -> dict[str, Outcomes]:
    """Return what the calls of each function came to, from a log that may end anywhere."""
    outcomes: dict[str, Outcomes] = {}
    buffer = io.BytesIO(content)
    while buffer.tell() < len(content):
        try:
            record = pickle.load(buffer)
        except (EOFError, pickle.UnpicklingError):
            break
        known = outcomes.setdefault(record.name, Outcomes())
        known.started = max(known.started, record.call + 1)
        if record.raised is not None:
            known.raised[record.call] = record.raised
        elif record.results is not None:
            known.returned[record.call] = record.results
        elif not record.is_same:
            known.unfinished.add(record.call)
            continue
        known.unfinished.discard(record.call)
    return outcomes
