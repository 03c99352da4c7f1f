"""Put programs together that are the same, in one process or in several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from jaxsight.profiles.places import CodePlace
from jaxsight.runs.collected import RunProcess, RunProgram
from jaxsight.runs.reasons import Recompilation, recompilation

FunctionKey = tuple[str, CodePlace | None, bool]
"""What programs of one function have in common: name, place, whether they are transformed."""


@dataclass(frozen=True, slots=True)
class TimedCompile:
    """One time that a program was compiled."""

    process: int
    program: RunProgram
    reason: Recompilation | None
    """Why, if its function had been compiled before."""


@dataclass(slots=True)
class MergedProgram:
    """A program, with all times that it was compiled."""

    key: str
    """Names it on the page, the same in the next run: a digest of what it is."""
    compilations: list[TimedCompile] = field(default_factory=list)

    @property
    def first(self) -> RunProgram:
        """What it is."""
        return self.compilations[0].program

    @property
    def seconds(self) -> float:
        """What it took in all processes together."""
        return sum(each.program.seconds for each in self.compilations)


@dataclass(slots=True)
class CompiledFunction:
    """A function with all its programs, in the order in which they were first compiled."""

    name: str
    defined: CodePlace | None
    is_transformed: bool
    programs: list[MergedProgram] = field(default_factory=list)
    calls: int | None = None
    """How often it was called at least in all processes; `None` if it is not known."""

    @property
    def seconds(self) -> float:
        """What its programs took in all processes together."""
        return sum(program.seconds for program in self.programs)

    @property
    def recompilations(self) -> list[tuple[MergedProgram, TimedCompile]]:
        """The times that it was compiled after the first time in a process."""
        found = [
            (program, each)
            for program in self.programs
            for each in program.compilations
            if each.reason is not None
        ]
        return sorted(found, key=lambda pair: pair[1].program.at)


def merged(processes: Sequence[RunProcess]) -> list[CompiledFunction]:
    """Return the functions that a run compiled, those that took longest first."""
    functions: dict[FunctionKey, CompiledFunction] = {}
    known: dict[FunctionKey, dict[str, MergedProgram]] = defaultdict(dict)
    for number, process in enumerate(processes):
        earlier: dict[FunctionKey, list[RunProgram]] = defaultdict(list)
        for program in process.programs:
            key = program.name, program.defined, program.is_transformed
            function = functions.setdefault(key, CompiledFunction(*key))
            digest = _digest(program)
            if digest not in known[key]:
                known[key][digest] = MergedProgram(digest)
                function.programs.append(known[key][digest])
            reason = recompilation(program, earlier[key])
            known[key][digest].compilations.append(TimedCompile(number, program, reason))
            earlier[key].append(program)
    for function in functions.values():
        function.calls = _calls(function, processes)
    return sorted(functions.values(), key=lambda function: -function.seconds)


def _calls(function: CompiledFunction, processes: Sequence[RunProcess]) -> int | None:
    compiled = [each for program in function.programs for each in program.compilations]
    total = 0
    for process, number in {(each.process, each.program.function) for each in compiled}:
        calls = processes[process].calls
        if calls is None or str(number) not in calls or not number:
            return None
        total += calls[str(number)]
    return total


def _digest(program: RunProgram) -> str:
    """Return a name of what a program is: its function, what it takes, and the kernels."""
    place = program.defined
    parts = (
        program.name,
        place.file.rpartition("/")[2] if place is not None else "",
        program.arguments,
        sorted(program.static.items()),
        program.shardings,
        program.is_transformed,
        program.devices,
        program.error,
        program.jaxpr or program.hlo,
    )
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
