"""The metadata of HLO: names of operations, the equations and the lines of code in them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping

from jaxsight.hlo.text import parse
from jaxsight.wire.chunks import Span, equation_path

_PLAIN = (
    (re.compile(r"^HloModule [^,\n]+"), "HloModule"),
    (re.compile(r"^(ENTRY )?(%\S+) \(.*\{$", re.MULTILINE), r"\1\2 {"),
    (
        re.compile(r", (?:metadata|frontend_attributes)=\{(?:[^{}\"]|\"[^\"]*\"|\{[^{}]*\})*\}"),
        "",
    ),
    (re.compile(r", backend_config=.*$", re.MULTILINE), ""),
)
_NAME = re.compile(r"%[\w.-]+")
_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
_NAMED = re.compile(r'op_name="(?:[^"\\]|\\.)*"[^{}]*\}')
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[\w.-]+)')
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_TABLE = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n((?:\d.*\n)*)", re.MULTILINE
)
_ROW = re.compile(r"(\d+) (.*)")
_DEEPEST = 200
"""Callers that are looked at; JAX writes at most ten by default
(`jax_traceback_in_locations_limit`)."""


def without_metadata(text: str) -> str:
    """Return HLO with as many lines, without the metadata of instructions."""
    return _METADATA.sub("", text)


def with_names(text: str, name: Callable[[Mapping[str, str]], str]) -> str:
    """Return HLO with other names of operations.

    Args:
        text: the HLO.
        name: returns the name for an instruction's metadata, by field.
    """

    def renamed(match: re.Match[str]) -> str:
        fields = fields_of(match[0])
        return match[0].replace(f'"{fields["op_name"]}"', f'"{name(fields)}"', 1)

    return _NAMED.sub(renamed, text)


def digest(text: str) -> str:
    """Return what identifies a program, whatever its functions and variables are called.

    Settings of the code generator and metadata do not count.
    """
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    numbers: dict[str, str] = {}
    text = _NAME.sub(lambda match: numbers.setdefault(match[0], f"%{len(numbers)}"), text)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def fields_of(text: str) -> dict[str, str]:
    """Return the fields of metadata, such as `op_name` and `source_line`, without quotes."""
    return {name: value.strip('"') for name, value in _FIELD.findall(text)}


def lines_of_equations(text: str) -> dict[int, str]:
    """Return the lines of HLO that are of an equation, from 0, each with the equation's path."""
    named = (
        (number, _OP_NAME.search(line))
        for number, line in enumerate(text.split("\n"))
        if "op_name=" in line
    )
    paths = {number: equation_path(name[1]) for number, name in named if name is not None}
    return {number: path for number, path in paths.items() if path}


def lines_of_calls(text: str) -> dict[int, str]:
    """Return the same of HLO before optimizations, whose functions are not inlined.

    Names in a function of the program are relative to the call; computations of a loop, branch or
    reduction have those of the function around it.
    """
    module = parse(text)
    paths: dict[int, str] = {}
    waiting = [(module.entry, "")] if module.entry is not None else []
    seen = {computation.name for computation, _ in waiting}
    for computation, prefix in waiting:  # which grows
        for instruction in computation.instructions:
            path = instruction.equation
            if path:
                paths[instruction.line] = prefix + path
            is_call = instruction.opcode == "call"
            if is_call and not path:
                continue
            for name in (each for names in instruction.called.values() for each in names):
                called = module.computation(name) if name not in seen else None
                if called is not None:
                    seen.add(name)
                    waiting.append((called, f"{prefix}{path}/" if is_call else prefix))
    return paths


class HloFrames:
    """The frames of a module: since JAX 0.9 as tables at the top, before that in each instruction.

    The tables are those of `StackFrameIndexProto` (xla/service/hlo.proto).
    """

    def __init__(self, text: str) -> None:
        tables = {name: dict(_ROW.findall(rows)) for name, rows in _TABLE.findall(text)}
        self._files, self._locations, self._frames = (
            tables.get(name, {}) for name in ("FileNames", "FileLocations", "StackFrames")
        )

    def of(self, fields: Mapping[str, str]) -> Iterator[Span]:
        """Yield the places of calls in metadata, innermost first; the chunk is a file's path."""
        number = fields.get("stack_frame_id", "")
        for _ in range(_DEEPEST):
            if number not in self._frames:
                break
            frame = fields_of(self._frames[number])
            location = fields_of(self._locations.get(frame.get("file_location_id", ""), ""))
            file = self._files.get(location.get("file_name_id", ""), "").strip('"')
            if file:
                yield _span(file, location)
            # XLA prints one more than the parent's number, so that 1 is none.
            number = str(int(frame.get("parent_frame_id", 1)) - 1)
        if "source_file" in fields:
            yield _span(fields["source_file"], fields, "source_")


def _span(file: str, fields: Mapping[str, str], prefix: str = "") -> Span:
    """Return the place in the fields `line`, `end_line`, …, which may have a prefix."""
    line = int(fields.get(f"{prefix}line", 0))
    column = int(fields.get(f"{prefix}column", 0))
    end_line = int(fields.get(f"{prefix}end_line", line))
    return Span(file, line, column, end_line, int(fields.get(f"{prefix}end_column", 0)))
