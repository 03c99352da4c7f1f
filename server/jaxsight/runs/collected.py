"""Read what the processes of a run logged (`recording/programs/`)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from jaxsight import __version__
from jaxsight.files.appended import appended
from jaxsight.profiles.places import CodePlace, library_of
from jaxsight.recording import RUN, running
from jaxsight.recording.programs import ENDING, LARGEST
from jaxsight.wire.messages.compiling import Memory

Record = Mapping[str, object]
T = TypeVar("T", "RunProcess", "RunProgram")


@dataclass(frozen=True, slots=True)
class RunProgram:
    """A program that a process compiled once."""

    name: str
    defined: CodePlace | None
    """Where its function is defined."""
    called: tuple[CodePlace, ...]
    """The innermost lines of the user's that called it."""
    arguments: tuple[tuple[str, str], ...]
    """Names and types; a weak type ends with `*`."""
    results: tuple[str, ...]
    static: Mapping[str, str]
    shardings: tuple[str, ...]
    context: Mapping[str, str]
    """Settings of JAX that decide what a trace is."""
    function: int
    """The number of the function object in its process; 0 if unknown."""
    is_transformed: bool
    """Whether it is a part of a derivative or a batch that is evaluated outside of `jit`."""
    at: float
    """When it was compiled, in seconds since the epoch."""
    trace: float | None
    """Seconds; `None` if unknown. The first compile of a lowered function is the one that has it.
    """
    lower: float | None
    compile: float
    """Seconds in XLA, or to read it from the persistent cache."""
    is_cached: bool
    """Whether it is from the persistent compilation cache."""
    saved: float
    """Seconds that the cache saved, by JAX's account."""
    memory: Memory
    platform: str
    device: str
    devices: int
    hlo: str
    jaxpr: str
    equations: int
    error: str
    """Why XLA did not compile it; empty if it did."""

    @property
    def seconds(self) -> float:
        """What it took to trace, lower and compile it, as far as known."""
        return (self.trace or 0) + (self.lower or 0) + self.compile

    @property
    def library(self) -> str:
        """The library that defines its function; empty if the user does."""
        return library_of(self.defined.file) if self.defined is not None else "jax"


@dataclass(slots=True)
class RunProcess:
    """A process of a run, and what it compiled in order."""

    pid: int
    parent: int
    command: tuple[str, ...]
    began: float
    ranks: Mapping[str, str]
    """Variables with which launchers name a process."""
    jax: str
    python: str
    ended: float | None = None
    """When Python ended it; `None` for processes that were killed, crashed or left at once."""
    index: int | None = None
    """`jax.process_index()`, once a program was compiled."""
    programs: list[RunProgram] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Errors of ours."""


@dataclass(slots=True)
class RunSummary:
    """The run itself."""

    command: tuple[str, ...]
    status: int
    began: float
    seconds: float
    version: str
    """That of jaxsight."""


def read(folder: Path) -> list[RunProcess]:
    """Return the processes that imported JAX, in the order in which they did."""
    processes: list[RunProcess] = []
    for lines in appended(folder, ENDING, LARGEST):
        process: RunProcess | None = None
        for line in lines:
            if isinstance(introduced := line.get("process"), Mapping):
                process = _read(RunProcess, introduced)
                processes.append(process)
            elif process is None:
                continue
            elif isinstance(program := line.get("program"), Mapping):
                process.programs.append(_program(program))
                if "rank" in program:
                    process.index = int(_number(program, "rank"))
            elif "end" in line:
                process.ended = _number(line, "end")
            elif "error" in line:
                process.errors.append(_text(line, "error"))
    return sorted(processes, key=lambda process: process.began)


_LOGGED_AS = {"is_transformed": "transformed", "is_cached": "cached"}
"""Keys in the log of fields with other names."""


def _read(kind: type[T], record: Record, **known: object) -> T:
    """Return a record of a log as an object, by the types of its fields."""
    values = {
        each.name: _READERS[str(each.type)](record, _LOGGED_AS.get(each.name, each.name))
        for each in fields(kind)
        if each.name not in known and each.default is each.default_factory is MISSING
    }
    made: Callable[..., T] = kind
    return made(**values, **known)


def _program(record: Record) -> RunProgram:
    file, sizes = _text(record, "file"), record.get("memory")
    known = sizes if isinstance(sizes, Mapping) else {}
    figures: dict[str, Any] = {
        each.name: int(_number(known, each.name))
        for each in fields(Memory)
        if each.type == "int" and each.name in known
    }
    defined = CodePlace(file, int(_number(record, "line"))) if file else None
    return _read(RunProgram, record, defined=defined, memory=Memory(**figures))


def _places(record: Record, name: str) -> tuple[CodePlace, ...]:
    found = []
    for each in _sequence(record, name):
        match each:
            case [str(file), int(line), str(function)]:
                found.append(CodePlace(file, line, function))
    return tuple(found)


def _pairs(record: Record, name: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (str(each[0]), str(each[1]))
        for each in _sequence(record, name)
        if isinstance(each, Sequence) and len(each) == 2
    )


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""


def _number(record: Record, name: str) -> float:
    value = record.get(name)
    is_finite = isinstance(value, int | float) and abs(value) < 1e18
    return value if isinstance(value, int | float) and is_finite else 0.0


def _sequence(record: Record, name: str) -> Sequence[object]:
    value = record.get(name)
    return value if isinstance(value, list) else ()


def _texts(record: Record, name: str) -> dict[str, str]:
    value = record.get(name)
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, Mapping) else {}


_READERS: Mapping[str, Callable[[Record, str], object]] = {
    "str": _text,
    "float": _number,
    "float | None": lambda record, name: (
        _number(record, name) if record.get(name) is not None else None
    ),
    "int": lambda record, name: int(_number(record, name)),
    "bool": lambda record, name: record.get(name) is True,
    "Mapping[str, str]": _texts,
    "tuple[str, ...]": lambda record, name: tuple(map(str, _sequence(record, name))),
    "tuple[tuple[str, str], ...]": _pairs,
    "tuple[CodePlace, ...]": _places,
}
"""What reads a value of a log, by the type of the field."""


# Run the user's program, and read what its processes compiled.


def collect(
    command: Sequence[str], environment: Mapping[str, str], shown: Sequence[str] = ()
) -> tuple[RunSummary, list[RunProcess]]:
    """Run a command to its end, and return what its processes compiled.

    Args:
        command: the program with its arguments.
        environment: the program's variables.
        shown: the command as the user wrote it, if it is another.

    Raises:
        FileNotFoundError, PermissionError: there is no such program.
    """
    with tempfile.TemporaryDirectory(prefix="jaxsight-run-") as name:
        variables = running.observed_environment(environment, {RUN: name})
        began, clock = time.time(), time.monotonic()
        status = running.run(command, variables, lambda: None)
        seconds = time.monotonic() - clock
        summary = RunSummary(tuple(shown or command), status, began, seconds, __version__)
        return summary, read(Path(name))
