"""Run a program that was compiled from StableHLO, without a function of JAX around it.

This applies to JAX 0.8 to 0.12.

Private API used: `LoadedExecutable.execute_sharded`, `ExecuteResults`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import jax

from jaxsight.measuring.programs import ready


class HloModule(Protocol):
    """A module of a compiled program."""

    def to_string(self) -> str: ...


class ExecuteResults(Protocol):
    """The results of a run."""

    def disassemble_into_single_device_arrays(self) -> Sequence[Sequence[jax.Array]]: ...


class LoadedExecutable(Protocol):
    """A compiled program on its device."""

    def hlo_modules(self) -> Sequence[HloModule]: ...
    def execute_sharded(self, arguments: object) -> ExecuteResults: ...


def waiting(executable: LoadedExecutable) -> Callable[[object], object]:
    """Return a function that runs a program for one device with a list of its arguments.

    It returns when the results are ready.
    """

    def call(arguments: object) -> object:
        results = executable.execute_sharded(arguments)
        return ready(results.disassemble_into_single_device_arrays())

    return call
