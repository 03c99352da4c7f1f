"""The figures of optimized HLO that a run left, with the user's lines that kernels compute.

Such HLO has no paths of equations, but it has names and lines: since JAX 0.9 as tables before the
program (`HloModule`'s `StackFrames`), before that in each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from jaxsight.compiler.hlo import read
from jaxsight.figures.figures import AnyFigures, Figures, Nowhere
from jaxsight.profiles.places import library_of
from jaxsight.runs.collected import RunProgram
from jaxsight.targets.target import Target
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import ON_DEVICE, Compile, Compiled
from jaxsight.wire.messages.replies import Equation, Lowered
from jaxsight.wire.spans import Span

Written = Mapping[str, tuple[str, Span | None]]
"""The operation and the place of each equation, by its path; the chunk is the path of the file."""

_OPERATION = re.compile(r'op_name="(?P<name>(?:[^"\\]|\\.)*)"(?P<others>[^{}]*)\}')
_FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|[\w.-]+)')
_ROW = re.compile(r"^(?P<number>\d+) (?:\"(?P<text>(?:[^\"\\]|\\.)*)\"|\{(?P<fields>[^{}]*)\})$")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_DEEPEST = 200
"""Callers that are looked at; JAX writes at most ten by default
(`jax_traceback_in_locations_limit`)."""
_PLATFORMS = {"gpu": "cuda"}
"""Names of platforms for the kernel graph, by those of clients; others are the same."""


class _Lines(Nowhere[Span]):
    """The lines of a program's equations."""

    def __init__(self, operations: Written) -> None:
        self._operations = operations

    def of(self, path: str) -> Span | None:
        """Return the place of an equation."""
        return self._operations.get(path, ("", None))[1]

    def lines(self, at: Span) -> tuple[str, int, int]:
        """Return the name of a place's file, and its lines."""
        return at.chunk.replace("\\", "/").rpartition("/")[2], at.line, at.end_line


def figures_of(program: RunProgram) -> AnyFigures | None:
    """Return the figures of a program; `None` if its HLO was not kept, or cannot be read."""
    platform = _PLATFORMS.get(program.platform, program.platform) or "cpu"
    found = _read(program.hlo, platform)
    if found is None:
        return None
    graph, written = found
    compiled = Compiled(
        0,
        platform,
        ON_DEVICE,
        graph,
        program.memory,
        program.hlo,
        program.compile,
        device_kind=program.device,
        devices=program.devices,
    )
    equations = (Equation(path, operation) for path, (operation, _) in written.items())
    lowered = Lowered(0, platform, "", Compile(0, platform, ""), equations=tuple(equations))
    figures = Figures.of(Target(platform, platform, is_own=True), compiled, lowered)
    figures.places = _Lines(written)
    return figures


@lru_cache(maxsize=512)
def _read(hlo: str, platform: str) -> tuple[Graph, Written] | None:
    if not hlo:
        return None
    try:
        text, written = numbered(hlo)
        return read(text, platform=platform), written
    except (ValueError, LookupError, RecursionError):
        return None


def numbered(hlo: str) -> tuple[str, Written]:
    """Return HLO with the path of an equation in the metadata of each instruction.

    JAX's own has names such as `jit(f)/mul` and places: each pair of both is an equation.

    Returns:
        The text, and the primitive and the user's line of each equation by its path.
    """
    frames = _frames(hlo)
    paths: dict[tuple[str, Span | None], str] = {}

    def name(match: re.Match[str]) -> str:
        operation = match["name"].rpartition("/")[2]
        fields = {key: text.strip('"') for key, text in _FIELD.findall(match["others"])}
        at = frames.get(fields.get("stack_frame_id", ""))
        file = fields.get("source_file", "")
        if at is None and file and not library_of(file):
            at = _span(file, {key.removeprefix("source_"): text for key, text in fields.items()})
        if at is None and "/" not in match["name"]:
            return match[0]  # a parameter's name
        path = paths.setdefault((operation, at), str(len(paths)))
        return f'op_name="eq[{path}]"{match["others"]}}}'

    text = _OPERATION.sub(name, hlo)
    return text, {path: pair for pair, path in paths.items()}


def _span(file: str, fields: Mapping[str, str]) -> Span:
    line, column = int(fields.get("line", 0)), int(fields.get("column", 0))
    return Span(
        file, line, column, int(fields.get("end_line", line)), int(fields.get("end_column", 0))
    )


def _frames(hlo: str) -> dict[str, Span]:
    """Return the innermost line of the user's of each stack frame, by its number."""
    tables: dict[str, dict[str, str]] = {}
    table: dict[str, str] | None = None
    for line in hlo.split("\n"):
        if line in _TABLES:
            table = tables.setdefault(line, {})
        elif table is not None and (row := _ROW.match(line)) is not None:
            table[row["number"]] = row["text"] if row["text"] is not None else row["fields"]
        elif line.startswith(("%", "ENTRY")):
            break
    files, locations = tables.get("FileNames", {}), tables.get("FileLocations", {})
    frames = {key: dict(_FIELD.findall(row)) for key, row in tables.get("StackFrames", {}).items()}
    found: dict[str, Span] = {}
    for key in frames:
        number = key
        for _ in range(_DEEPEST):
            frame = frames.get(number, {})
            location = dict(_FIELD.findall(locations.get(frame.get("file_location_id", ""), "")))
            file = files.get(location.get("file_name_id", ""), "")
            if file and not library_of(file):
                found[key] = _span(file, location)
                break
            # XLA prints one more than the parent's number, so that 1 is none.
            number = str(int(frame.get("parent_frame_id", 1)) - 1)
    return found
