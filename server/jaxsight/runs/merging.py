"""Put programs together that are the same, in one process or in several."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from jaxsight.profiles.places import CodePlace
from jaxsight.recording.programs.record import RunProgram
from jaxsight.runs.collected import RunProcess

# Why a function was compiled again, in words: what differs from the most similar earlier call.

_TYPE = re.compile(r"(?P<dtype>[^\[]+)(?P<shape>\[.*\])?(?P<weak>\*)?", re.DOTALL)
_MOST = 4
"""Differences that are listed, a choice: a model whose batch has another size differs in each
activation, and a few of them say so."""


@dataclass(frozen=True, slots=True)
class ChangedInput:
    """One thing that differs: what changed, from what, to what."""

    changed: str
    before: str = ""
    now: str = ""
    remedy: str = ""
    """What to do, if it happens often."""

    def __str__(self) -> str:
        """Return a clause: `` `x` changed shape: f32[8] → f32[9] ``."""
        return f"{self.changed}: {self.before} → {self.now}" if self.before else self.changed


@dataclass(frozen=True, slots=True)
class Recompilation:
    """Why a program was compiled, although the function had been compiled before."""

    changes: tuple[ChangedInput, ...]
    more: int = 0
    """Differences that are not listed."""


_PAD = "pad to a few fixed shapes, so that each is compiled once"
_STATIC = "pass it as a traced argument, or use few different values"
_WEAK = "always pass an array: `jnp.asarray(value, dtype)`"
_RECREATED = "create the jitted function once, outside of the loop or function that calls it"


def recompilation(program: RunProgram, earlier: Sequence[RunProgram]) -> Recompilation | None:
    """Return why a program was compiled; `None` if nothing of its function was before.

    Args:
        program: the program.
        earlier: programs of the same function that the same process had compiled.
    """
    if not earlier or program.is_transformed:
        return None
    found = min((list(_differences(program, each)) for each in reversed(earlier)), key=len)
    if not found:
        return Recompilation((ChangedInput("compiled again for the same arguments"),))
    return Recompilation(tuple(found[:_MOST]), max(0, len(found) - _MOST))


def _differences(now: RunProgram, before: RunProgram) -> Iterator[ChangedInput]:
    if now.function and before.function and now.function != before.function:
        yield ChangedInput("the function was created again on the same line", remedy=_RECREATED)
    was, static = dict(before.static), dict(now.static)
    for name in dict.fromkeys((*was, *static)):
        values = was.get(name, "not passed"), static.get(name, "not passed")
        if values[0] != values[1]:
            yield ChangedInput(f"static argument `{name}` changed", *values, _STATIC)
    yield from _arguments(now, before)
    if now.results != before.results and now.arguments == before.arguments and not now.static:
        types = ", ".join(before.results[:_MOST]), ", ".join(now.results[:_MOST])
        yield ChangedInput("the results changed", *types)
    if now.error != before.error and before.error:
        yield ChangedInput("the earlier compile failed")
    for index, (own, other) in enumerate(zip(now.shardings, before.shardings, strict=False)):
        if own != other:
            name = _name(now.arguments, index)
            yield ChangedInput(f"sharding of {name} changed", other or "open", own or "open")
    for (setting, value), (_, earlier) in zip(now.context, before.context, strict=False):
        if earlier != value:
            yield ChangedInput(f"`{setting}` changed", earlier, value)
    if (now.platform, now.device, now.devices) != (before.platform, before.device, before.devices):
        yield ChangedInput("the device changed", _device(before), _device(now))


def _device(program: RunProgram) -> str:
    times = f"{program.devices} × " if program.devices > 1 else ""
    return f"{times}{program.device or program.platform or '?'}"


def _arguments(now: RunProgram, before: RunProgram) -> Iterator[ChangedInput]:
    """Yield differences of types, by name if all arguments have one, else by position."""
    own, other = _by_name(now.arguments), _by_name(before.arguments)
    for name, type_ in own.items():
        if name not in other:
            yield ChangedInput(f"{name} was added ({type_})")
        elif type_ != other[name]:
            yield _type(name, type_, other[name])
    for name in other:
        if name not in own:
            yield ChangedInput(f"{name} was left out ({other[name]})")


def _by_name(arguments: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    return {_name(arguments, index): type_ for index, (_, type_) in enumerate(arguments)}


def _name(arguments: Sequence[tuple[str, str]], index: int) -> str:
    name = arguments[index][0] if index < len(arguments) else ""
    return f"`{name}`" if name else f"argument {index}"


def _type(name: str, now: str, before: str) -> ChangedInput:
    own, other = _TYPE.fullmatch(now), _TYPE.fullmatch(before)
    if own is None or other is None:
        return ChangedInput(f"{name} changed its type", before, now)
    if own["shape"] != other["shape"]:
        also = own["dtype"] != other["dtype"]
        changed = "shape and dtype" if also else "shape"
        ranks = [(each["shape"] or "").count(",") for each in (own, other)]
        remedy = _PAD if ranks[0] == ranks[1] and not also else ""
        return ChangedInput(f"{name} changed {changed}", before, now, remedy)
    if own["dtype"] != other["dtype"]:
        return ChangedInput(f"{name} changed dtype", before, now)
    if other["weak"]:
        return ChangedInput(f"{name} was a Python scalar, now an array of {now}", remedy=_WEAK)
    return ChangedInput(f"{name} was an array of {before}, now a Python scalar", remedy=_WEAK)


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
            if (digest := _digest(program)) not in known[key]:
                known[key][digest] = MergedProgram(digest)
                function.programs.append(known[key][digest])
            reason = recompilation(program, earlier[key])
            known[key][digest].compilations.append(TimedCompile(number, program, reason))
            earlier[key].append(program)
    return sorted(functions.values(), key=lambda function: -function.seconds)


def _digest(program: RunProgram) -> str:
    """Return a name of what a program is: its function, what it takes, and the kernels."""
    place = program.defined
    parts = (
        program.name,
        place.file.rpartition("/")[2] if place is not None else "",
        program.arguments,
        sorted(program.static),
        program.shardings,
        program.is_transformed,
        program.devices,
        program.error,
        program.jaxpr or program.hlo,
    )
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:12]
