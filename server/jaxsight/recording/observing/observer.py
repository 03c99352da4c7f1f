"""Look at the calls of the project's functions, a few for each, and log what they are called with.

Everything is bounded, so that a run takes at most a tenth longer: a function is looked at until its
calls are known, and all functions together for a small share of the time.

This module uses only the standard library; what it asks of JAX is imported once the program has
imported JAX.
"""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from jaxsight.recording.observing.functions import ProjectFiles, ProjectFunction, arguments
from jaxsight.recording.observing.log import Log

if TYPE_CHECKING:
    from jaxsight.recording.observing.calls import CallKind, Calls

_CALLS = 32
"""Calls of a function that are looked at, a choice as are the next ones: more find rarer shapes,
and slow the program down."""
_KINDS = 6
"""Different calls of a function that are logged."""
_SECONDS = 0.02
"""Time for a function; with the share below, what keeps a run within a tenth of its time."""
_SHARE = 0.03
"""Share of the time for functions whose first call is known."""
_BEGUN = 100
"""Calls that have not returned, whose arguments are kept."""
_LONGEST = 300
"""Maximum length of an error, in characters: one or two sentences."""
_WITHOUT_JAX = 1000
"""Calls of a function before the program has imported JAX, after which it is not observed."""


@dataclass(slots=True)
class _Observed:
    """A function that is being observed."""

    function: ProjectFunction
    calls: int = 0
    early_calls: int = 0
    seconds: float = 0.0
    is_plain: bool = False
    """Whether a call without arrays was logged."""
    known: dict[CallKind, int] = field(default_factory=dict)
    """The number of each call in the log."""


class Observer:
    """Looks at the frames of a process that begin to run."""

    def __init__(self, files: ProjectFiles, log: Log) -> None:
        self.files = files
        self.log = log
        self._functions: dict[CodeType, _Observed] = {}
        self._begun: dict[int, list[tuple[str, object]]] = {}
        """The arguments of calls that may make something, by frame."""
        self._lock = threading.Lock()
        self._calls: Calls | None = None
        self._start = time.perf_counter()
        self._spent = 0.0

    def belongs(self, code: CodeType) -> bool:
        """Return whether code is that of a function to observe."""
        if code in self._functions:
            return True
        try:
            function = self.files.function(code)
        except (OSError, ValueError):
            return False
        if function is not None:
            self._functions[code] = _Observed(function)
        return function is not None

    def forked(self) -> None:
        """Begin anew in a process that was forked."""
        self._lock = threading.Lock()
        self._functions = {code: _Observed(o.function) for code, o in self._functions.items()}
        self.log.begin()

    def began(self, frame: FrameType) -> bool:
        """Look at a function that begins to run; return whether to look at its next call."""
        observed = self._functions[frame.f_code]
        if not self._lock.acquire(blocking=False):
            return True  # another thread's turn
        try:
            if self._calls is None and not self._import():
                observed.early_calls += 1
                self._plain(observed)
                return observed.early_calls < _WITHOUT_JAX
            if (
                observed.known
                and not observed.function.is_constructor
                and self._spent > _SHARE * (time.perf_counter() - self._start)
            ):
                observed.calls += 1
                return observed.calls < _CALLS
            start = time.thread_time()
            try:
                more = self._look(observed, frame)
            finally:
                seconds = time.thread_time() - start
                observed.seconds += seconds
                self._spent += seconds
            more = more and observed.calls < _CALLS and observed.seconds < _SECONDS
            if not more and observed.function.is_constructor and self._calls is not None:
                self._calls.misses_objects = True
            return more
        except Exception as error:  # noqa: BLE001 - nothing here may disturb the program
            message = f"{observed.function.name}: {type(error).__name__}: {error}"
            self.log.append({"error": message[:_LONGEST]})
            return False
        finally:
            self._lock.release()

    def makes(self, code: CodeType) -> bool:
        """Return whether what some code returns is of interest."""
        observed = self._functions.get(code)
        return observed is not None and (observed.function.is_maker or observed.is_plain)

    def returned(self, frame: FrameType, value: object) -> bool:
        """Look at what a function returns; return whether to look at the next time."""
        named = self._begun.pop(id(frame), None)
        if named is None or self._calls is None or not self._lock.acquire(blocking=False):
            return True
        try:
            return self._calls.returning(frame, named, value)
        except Exception:  # noqa: BLE001 - nothing here may disturb the program
            return False
        finally:
            self._lock.release()

    def _import(self) -> bool:
        """Import what knows JAX, once the program has imported it."""
        jax = sys.modules.get("jax")
        if jax is None or getattr(jax.__spec__, "_initializing", False):
            return False
        from jaxsight.recording.observing.calls import Calls

        self._calls = Calls()
        return True

    def _begin(self, frame: FrameType, named: list[tuple[str, object]]) -> None:
        """Keep the arguments of a call until it returns."""
        if len(self._begun) >= _BEGUN:
            self._begun.clear()  # calls that raised
        self._begun[id(frame)] = named

    def _plain(self, observed: _Observed) -> None:
        """Log that a function is called without arrays, once."""
        if not observed.is_plain:
            observed.is_plain = True
            self.log.append({"plain": [observed.function.file, observed.function.name]})

    def _look(self, observed: _Observed, frame: FrameType) -> bool:
        """Log a call; return whether further ones may be different."""
        assert self._calls is not None
        function = observed.function
        passed = arguments(frame)
        named = [(name, value) for name, value in passed if not name.startswith("*") or value]
        if function.is_maker:
            self._begin(frame, named)
            return True
        if function.is_constructor:
            self._calls.constructing(frame, named)
            observed.calls = 0  # each object is made by a call of its own
            return True
        observed.calls += 1
        if (kind := self._calls.kind(named, frame.f_globals)) is None:
            self._plain(observed)
            self._begin(frame, named)
            return True
        if (number := observed.known.get(kind)) is not None:
            self.log.append({"again": number})
            return True
        written = self._calls.written(named, frame.f_globals)
        number = self.log.add(
            function,
            written.text,
            is_traced=kind.is_traced,
            unwritten=written.unwritten,
        )
        observed.known[kind] = number
        return number >= 0 and len(observed.known) < _KINDS
