"""Programs in a profile: the source lines of each instruction of their optimized HLO.

The messages are those of `xla/service/hlo.proto` and `OpMetadata` in `xla/xla_data.proto`. They are
read in parts: of an instruction only its name, its operands and its metadata, never its constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from jaxsight.profiles import protobuf
from jaxsight.profiles.places import CodePlace, LibraryPlace, Place, library_of
from jaxsight.profiles.space import Bytes, FilePart

_INSTRUCTION = 1 << 16
"""Bytes of an instruction that is read as a whole, a choice; constants are longer."""
_STACKS = 1 << 26
"""Bytes of the frames of a program, a choice: they take some kilobytes."""
_STEPS = 8
"""Instructions to the nearest one with a line, a choice: copies and conversions that XLA adds come
in chains of two or three."""
_FRAMES = 200
"""Callers that are looked at; JAX writes at most ten by default
(`jax_traceback_in_locations_limit`)."""

# XEventMetadata, XStat, HloProto
_STATS, _BLOB, _MODULE = 5, 6, 1
# HloModuleProto
_COMPUTATIONS, _ENTRY, _STACK_FRAMES = 3, 6, 17
# HloComputationProto
_INSTRUCTIONS, _NUMBER_OF_COMPUTATION, _ROOT, _IS_FUSION = 2, 5, 6, 7
# HloInstructionProto
_NAME, _OPCODE, _METADATA, _NUMBER, _OPERANDS, _CALLED = 1, 2, 7, 35, 36, 38
_KEPT = frozenset({_NAME, _OPCODE, _METADATA, _NUMBER, _OPERANDS, _CALLED})
# OpMetadata
_SCOPE, _FILE, _LINE, _FRAME = 2, 3, 4, 15

_COLLECTIVES = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "ragged-all-to-all",
    "recv",
    "reduce-scatter",
    "send",
)


@dataclass(frozen=True, slots=True)
class ProfiledInstruction:
    """An instruction that may be a kernel."""

    name: str
    opcode: str
    place: Place | None
    """The line of the instruction, for a fusion that of its result; `None` if it has none."""
    lines: tuple[CodePlace, ...] = ()
    """All lines that are fused in it."""
    scope: str = ""
    """JAX's names of what it belongs to: `jit(step)/jvp(MLP)/Dense_0/dot_general`."""
    is_for: bool = False
    """Whether the line is that of an instruction that needs this one, which XLA has added."""
    is_entry: bool = False
    """Whether it runs once each time that the program does."""


def is_collective(opcode: str) -> bool:
    """Return whether an opcode, or the name of an instruction, is that of a collective."""
    return opcode.startswith(_COLLECTIVES)


@dataclass(slots=True)
class _Raw:
    """An instruction as it is written."""

    number: int = 0
    name: str = ""
    opcode: str = ""
    operands: list[int] = field(default_factory=list)
    called: list[int] = field(default_factory=list)
    metadata: bytes = b""


@dataclass(slots=True)
class _Computation:
    number: int = 0
    root: int = 0
    is_fusion: bool = False
    instructions: list[_Raw] = field(default_factory=list)


class _Sources:
    """Turns metadata of instructions into places; those of a frame are found once."""

    def __init__(self, frames: bytes) -> None:
        """Read a StackFrameIndexProto, whose ids count from 1."""
        self._files: list[str] = [""]
        self._functions: list[str] = [""]
        self._locations: list[tuple[int, int, int]] = [(0, 0, 0)]
        self._frames: list[tuple[int, int]] = [(0, 0)]
        for number, value in protobuf.fields(frames):
            if not isinstance(value, bytes):
                continue
            inner = dict(protobuf.fields(value)) if number in (3, 4) else {}
            first, second, third = (protobuf.integer(inner.get(key)) for key in (1, 2, 3))
            match number:
                case 1:
                    self._files.append(protobuf.text(value))
                case 2:
                    self._functions.append(protobuf.text(value))
                case 3:
                    self._locations.append((first, second, third))
                case 4:
                    self._frames.append((first, second))
        self._known: dict[int, Place | None] = {}

    def read(self, metadata: bytes) -> tuple[Place | None, str]:
        """Return the place of an instruction, and its scope."""
        values = dict(protobuf.fields(metadata))
        scope = protobuf.text(values.get(_SCOPE))
        frame = protobuf.integer(values.get(_FRAME))
        if 0 < frame < len(self._frames):
            if frame not in self._known:
                self._known[frame] = self._of_frame(frame)
            if (place := self._known[frame]) is not None:
                return place, scope
        if not (file := protobuf.text(values.get(_FILE))):
            return None, scope
        if library := library_of(file):
            return LibraryPlace(library), scope
        return CodePlace(file, protobuf.integer(values.get(_LINE))), scope

    def _of_frame(self, frame: int) -> Place | None:
        """Return the innermost line of the user's, else the library of the innermost frame."""
        innermost = ""
        for _ in range(_FRAMES):
            if not 0 < frame < len(self._frames):
                break
            location, frame = self._frames[frame]
            file, function, line = self._locations[location]
            name = self._files[file]
            library = library_of(name)
            if name and not library:
                return CodePlace(name, line, self._functions[function])
            innermost = innermost or library
        return LibraryPlace(innermost) if innermost else None


def read(file: Bytes, entry: FilePart) -> dict[str, ProfiledInstruction]:
    """Return the instructions of a program by name.

    Args:
        file: the profile.
        entry: the program's name in the plane of programs.

    Raises:
        ValueError, IndexError: it has another form.
    """
    if (module := file.inside(entry, 2, _STATS, _BLOB, _MODULE)) is None:
        return {}
    computations: list[_Computation] = []
    frames, main = b"", 0
    for number, value in file.fields(module):
        if number == _COMPUTATIONS and isinstance(value, FilePart):
            computations.append(_computation(file, value))
        elif number == _STACK_FRAMES and isinstance(value, FilePart):
            frames = file.read(value, _STACKS)
        elif number == _ENTRY and isinstance(value, int):
            main = value
    sources = _Sources(frames)
    fusions = {each.number: each for each in computations if each.is_fusion}
    found: dict[str, ProfiledInstruction] = {}
    for computation in computations:
        if not computation.is_fusion:
            for each in _resolved(computation, fusions, sources, computation.number == main):
                found[each.name] = each
    return found


def _computation(file: Bytes, part: FilePart) -> _Computation:
    computation = _Computation()
    for number, value in file.fields(part):
        if isinstance(value, FilePart):
            if number == _INSTRUCTIONS:
                computation.instructions.append(_instruction(file, value))
        elif number == _NUMBER_OF_COMPUTATION:
            computation.number = value
        elif number == _ROOT:
            computation.root = value
        elif number == _IS_FUSION:
            computation.is_fusion = bool(value)
    return computation


def _instruction(file: Bytes, part: FilePart) -> _Raw:
    raw = _Raw()
    for number, value in _kept(file, part):
        match number, value:
            case (1, bytes()):
                raw.name = protobuf.text(value)
            case (2, bytes()):
                raw.opcode = protobuf.text(value)
            case (7, bytes()):
                raw.metadata = value
            case (35, int()):
                raw.number = value
            case (36 | 38, _):
                numbers = raw.operands if number == _OPERANDS else raw.called
                numbers += [value] if isinstance(value, int) else protobuf.varints(value)
    return raw


def _kept(file: Bytes, part: FilePart) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of an instruction that are of interest."""
    if part.end - part.start <= _INSTRUCTION:
        yield from protobuf.fields(file.read(part, _INSTRUCTION))
        return
    for number, value in file.fields(part):
        if number in _KEPT:
            yield (
                number,
                file.read(value, _INSTRUCTION) if isinstance(value, FilePart) else value,
            )


def _resolved(
    computation: _Computation,
    fusions: dict[int, _Computation],
    sources: _Sources,
    is_entry: bool,
) -> Iterator[ProfiledInstruction]:
    """Yield the instructions of a computation, with their lines."""
    found: dict[int, ProfiledInstruction] = {}
    users: dict[int, list[int]] = {}
    for raw in computation.instructions:
        place, scope = sources.read(raw.metadata)
        fused = [fusions[number] for number in raw.called if number in fusions]
        inner, lines = _fused(fused, sources)
        if place is None or not scope:
            place = place or inner[0]
            scope = scope or inner[1]
        if isinstance(place, CodePlace):
            lines = dict.fromkeys([place, *lines])
        found[raw.number] = ProfiledInstruction(
            raw.name,
            raw.opcode,
            place,
            tuple(lines),
            scope,
            is_entry=is_entry,
        )
        for operand in raw.operands:
            users.setdefault(operand, []).append(raw.number)
    operands = {raw.number: raw.operands for raw in computation.instructions}
    for number, each in found.items():
        if each.place is None and each.opcode not in ("parameter", "constant", "tuple"):
            near = _nearest(number, users, found) or _nearest(number, operands, found)
            if near is not None:
                scope = each.scope or near.scope
                each = replace(each, place=near.place, lines=near.lines, scope=scope, is_for=True)
        yield each


def _fused(
    computations: Iterable[_Computation], sources: _Sources
) -> tuple[tuple[Place | None, str], Iterable[CodePlace]]:
    """Return the place and scope of the result of fused computations, and all lines in them.

    Where the result has no line, it is the line that most of the instructions have.
    """
    counted: Counter[tuple[Place | None, str]] = Counter()
    result: tuple[Place | None, str] = (None, "")
    for computation in computations:
        for raw in computation.instructions:
            if not raw.metadata:
                continue
            read = sources.read(raw.metadata)
            if read[0] is None:
                continue
            counted[read] += 1
            if raw.number == computation.root:
                result = read
    if result[0] is None and counted:
        result = counted.most_common(1)[0][0]
    lines = dict.fromkeys(place for place, _ in counted if isinstance(place, CodePlace))
    return result, lines


def _nearest(
    number: int, edges: dict[int, list[int]], found: dict[int, ProfiledInstruction]
) -> ProfiledInstruction | None:
    """Return the nearest instruction with a line along the edges."""
    seen = {number}
    level: Sequence[int] = [number]
    for _ in range(_STEPS):
        level = [each for last in level for each in edges.get(last, ()) if each not in seen]
        level = list(dict.fromkeys(level))[:64]
        seen.update(level)
        for each in level:
            other = found.get(each)
            if other is not None and other.place is not None and not other.is_for:
                return other
    return None
