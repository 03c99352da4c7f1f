"""What callbacks returned or raised during the execution in flight, written as it happens.

The log has pickled records one after the other: a `Started` before each call, so that a callback
that hangs or kills its process is known, and how it ended after it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxsight_repro.capturing import case
from jaxsight_repro.capturing.raised import Raised, raised_of
from jaxsight_repro.values import ConcreteValue

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
