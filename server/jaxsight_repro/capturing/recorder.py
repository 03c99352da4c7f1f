"""Writes what is about to run into the folder of a case, and notes what failed.

Nothing here may raise into the user's program, change its results or compile anything.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import jax

from jaxsight.wire.meshes import Mesh
from jaxsight_repro import meshes
from jaxsight_repro.capturing import case, stacks
from jaxsight_repro.capturing.host_calls import CANNOT_WRITE, HostCalls
from jaxsight_repro.compat import configuration, pickling
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
        self._host_calls = HostCalls(folder, self.within)
        self.calling = self._host_calls.calling

    def starting(
        self, primitive: Primitive, arguments: Sequence[object], parameters: Mapping[str, object]
    ) -> None:
        """Write the primitive, on its first execution, and its arguments."""
        self._host_calls.begin()
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
        self._host_calls.close()

    @property
    def interrupted(self) -> bool:
        """Whether the program was interrupted in a callback."""
        return self._host_calls.interrupted

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
                if not stacks.is_installed(place.file):
                    return f"{place.file}:{place.line}"
        return ""

    def _keep_callbacks(self) -> None:
        """Keep what callbacks did during the execution that has ended."""
        content = self._host_calls.content()
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
