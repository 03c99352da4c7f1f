"""Read what the processes of a run logged (`recording/programs/log.py`)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight import __version__
from jaxsight.profiles.places import CodePlace, library_of
from jaxsight.recording import RUN, running
from jaxsight.recording.programs.log import logged
from jaxsight.wire.messages.compiling import Memory

Record = Mapping[str, object]


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
    calls: Mapping[str, int] | None = None
    """How often functions were called at least, by their numbers; `None` if it was not counted."""


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
    for lines in logged(folder):
        process: RunProcess | None = None
        for line in lines:
            if isinstance(introduced := line.get("process"), Mapping):
                process = _process(introduced)
                processes.append(process)
            elif process is None:
                continue
            elif isinstance(program := line.get("program"), Mapping):
                process.programs.append(_program(program))
                if "rank" in program:
                    process.index = int(_number(program, "rank"))
            elif "end" in line:
                process.ended = _number(line, "end")
                if isinstance(calls := line.get("calls"), Mapping):
                    process.calls = {str(key): int(_number(calls, key)) for key in calls}
            elif "error" in line:
                process.errors.append(_text(line, "error"))
    return sorted(processes, key=lambda process: process.began)


def _process(record: Record) -> RunProcess:
    return RunProcess(
        pid=int(_number(record, "pid")),
        parent=int(_number(record, "parent")),
        command=tuple(map(str, _sequence(record, "command"))),
        began=_number(record, "began"),
        ranks=_texts(record, "ranks"),
        jax=_text(record, "jax"),
        python=_text(record, "python"),
    )


def _program(record: Record) -> RunProgram:
    file = _text(record, "file")
    sizes = record.get("memory")
    return RunProgram(
        name=_text(record, "name"),
        defined=CodePlace(file, int(_number(record, "line"))) if file else None,
        called=tuple(_places(_sequence(record, "called"))),
        arguments=tuple(
            (str(each[0]), str(each[1]))
            for each in _sequence(record, "arguments")
            if isinstance(each, Sequence) and len(each) == 2
        ),
        results=tuple(map(str, _sequence(record, "results"))),
        static=_texts(record, "static"),
        shardings=tuple(map(str, _sequence(record, "shardings"))),
        context=_texts(record, "context"),
        function=int(_number(record, "function")),
        is_transformed=record.get("transformed") is True,
        at=_number(record, "at"),
        trace=_number(record, "trace") if record.get("trace") is not None else None,
        lower=_number(record, "lower") if record.get("lower") is not None else None,
        compile=_number(record, "compile"),
        is_cached=record.get("cached") is True,
        saved=_number(record, "saved"),
        memory=_memory(sizes if isinstance(sizes, Mapping) else {}),
        platform=_text(record, "platform"),
        device=_text(record, "device"),
        devices=int(_number(record, "devices")),
        hlo=_text(record, "hlo"),
        jaxpr=_text(record, "jaxpr"),
        equations=int(_number(record, "equations")),
        error=_text(record, "error"),
    )


def _memory(record: Record) -> Memory:
    def figure(name: str) -> int:
        return int(_number(record, name)) if name in record else -1

    return Memory(
        temporaries=figure("temporaries"),
        arguments=figure("arguments"),
        outputs=figure("outputs"),
        aliased=figure("aliased"),
        code=figure("code"),
        peak=figure("peak"),
    )


def _places(sequence: Sequence[object]) -> list[CodePlace]:
    found = []
    for each in sequence:
        match each:
            case [str(file), int(line), str(function)]:
                found.append(CodePlace(file, line, function))
    return found


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
