"""Have JAX profile some steps of the program that runs in this process.

A step is from one call of a compiled function to the next (`compiled_calls.py`).

The first calls of a function compile it, and JAX may compile it again for the types of its own
results: the profile begins after those.

This module uses only the standard library until the program has imported JAX.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import threading

from jaxsight.recording import (
    PROFILE,
    PROFILE_FUNCTION,
    PROFILE_OUTCOME,
    PROFILE_STEPS,
    ProfileOutcome,
)
from jaxsight.recording.compiled_calls import watch

_WARM = 3
"""Calls of a function before its profile: one compiles it for the first arguments, the next one
perhaps for those that have been computed, and a third is like all others."""
_LONGEST = 300
"""Characters of a message, a choice: one or two sentences."""
_NAME = "jaxsight profile --run"


class Profiler:
    """Counts calls of compiled functions, and profiles those of one."""

    def __init__(self, folder: str, steps: int, function: str) -> None:
        self.folder = folder
        self._steps = steps
        self._wanted = function
        self._counts: dict[int, int] = {}
        self._kept: list[object] = []
        """Functions that were counted, so that no other one gets their identity."""
        self._step: object = None
        """The function whose calls are steps, once it is known."""
        self._number = 0
        self._mark = contextlib.ExitStack()
        self._is_running = False
        self._lock = threading.Lock()

    def called(self, function: object) -> bool:
        """Note that a compiled function is called next; return whether to go on."""
        if self._step is not None and function is not self._step:
            return True
        with self._lock:
            return self._counted(function) if self._step is None else self._next()

    def finish(self) -> None:
        """End a profile that the program ended before all its steps."""
        with self._lock:
            if self._is_running:
                self._end(ProfileOutcome.ENDED_EARLY)

    def _counted(self, function: object) -> bool:
        if self._wanted and _name(function) != self._wanted:
            return True
        module = str(getattr(function, "__module__", ""))
        if not self._wanted and module.partition(".")[0] == "jax":
            return True  # `jnp.mean` and the like, called directly
        from jaxsight_source.compat.staging import is_tracing

        if is_tracing():
            return True
        key = id(function)
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count == 1:
            self._kept.append(function)
        if count <= _WARM:
            return True
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            os.close(os.open(os.path.join(self.folder, PROFILE_OUTCOME), flags, 0o600))  # noqa: PTH118
        except OSError:
            return False  # another process of the program is profiled
        self._step = function
        self._kept.clear()
        return self._begin()

    def _begin(self) -> bool:
        from jaxsight.measuring.machine import start_profile

        _wait()
        try:
            start_profile(self.folder)
        except Exception as error:  # noqa: BLE001 - the program may profile itself
            _report(self.folder, ProfileOutcome.FAILED, message=_message(error))
            return False
        self._is_running = True
        _report(self.folder, ProfileOutcome.BEGUN, function=_name(self._step))
        self._enter()
        return True

    def _next(self) -> bool:
        """Begin the next step, or end the profile."""
        if not self._is_running:
            return False
        self._number += 1
        if self._number < self._steps:
            self._mark.close()
            self._enter()
            return True
        self._end(ProfileOutcome.DONE)
        return False

    def _enter(self) -> None:
        import jax

        step = jax.profiler.StepTraceAnnotation(_name(self._step), step_num=self._number)
        self._mark.enter_context(step)

    def _end(self, outcome: ProfileOutcome) -> None:
        import jax

        self._is_running = False
        steps = self._number + (outcome is not ProfileOutcome.DONE)
        try:
            _wait()
            self._mark.close()
            jax.profiler.stop_trace()  # type: ignore[no-untyped-call]
        except Exception as error:  # noqa: BLE001 - nothing here may disturb the program
            _report(self.folder, ProfileOutcome.FAILED, message=_message(error))
            return
        _report(self.folder, outcome, function=_name(self._step), steps=steps)


def start() -> None:
    """Begin to look for steps."""
    folder = os.environ[PROFILE]
    steps = int(os.environ.get(PROFILE_STEPS, "5"))
    profiler = Profiler(folder, steps, os.environ.get(PROFILE_FUNCTION, ""))
    if watch(_NAME, profiler.called):
        atexit.register(profiler.finish)


def _wait() -> None:
    """Wait until devices have done all that the program has asked for so far."""
    import jax

    for array in jax.live_arrays():  # type: ignore[no-untyped-call]
        with contextlib.suppress(Exception):  # donated, or its computation failed
            array.block_until_ready()


def _name(function: object) -> str:
    return str(getattr(function, "__name__", "step"))


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST]


def _report(folder: str, outcome: ProfileOutcome, **details: object) -> None:
    """Write what came of it."""
    path = os.path.join(folder, PROFILE_OUTCOME)  # noqa: PTH118
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(descriptor, json.dumps({"outcome": outcome, **details}).encode())
        finally:
            os.close(descriptor)
