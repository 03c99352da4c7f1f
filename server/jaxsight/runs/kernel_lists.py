"""The kernels of optimized HLO as a run left it, with the user's lines that they compute.

A run's HLO has no paths of equations, but it has lines: since JAX 0.9 as a table of stack frames at
the top (`HloModule`'s `StackFrames`), before that in each instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jaxsight.compiler.hlo import read
from jaxsight.profiles.places import CodePlace, library_of
from jaxsight.wire.kernel_graph import Graph, Kernel

_TABLE = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n((?:\d.*\n)*)", re.MULTILINE
)
_ROW = re.compile(r"(\d+) (.*)")
_NUMBER = re.compile(r"(\w+)=(\d+)")
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_LINE = re.compile(r'source_file="([^"]*)" source_line=(\d+)')
_CALLS = re.compile(r"\bcalls=%?([\w.\-]+)")
_HEAD = re.compile(r"(?:ENTRY )?%?([^\s(]+) (?:\(|\{)")
_DEEPEST = 200
"""Callers that are looked at; JAX writes at most ten by default
(`jax_traceback_in_locations_limit`)."""
_PLATFORMS = {"gpu": "cuda"}
"""Names of platforms for the kernel graph, by those of clients; others are the same."""


@dataclass(frozen=True, slots=True)
class KernelList:
    """The kernels of a program, each with its lines."""

    graph: Graph
    lines: tuple[tuple[CodePlace, ...], ...]

    @property
    def rows(self) -> Iterator[tuple[Kernel, tuple[CodePlace, ...]]]:
        """The kernels with their lines."""
        return zip(self.graph.kernels, self.lines, strict=True)


@lru_cache(maxsize=512)
def kernel_list(hlo: str, platform: str) -> KernelList | None:
    """Return the kernels of a program; `None` if its HLO was not kept, or cannot be read."""
    if not hlo:
        return None
    try:
        graph = read(hlo, platform=_PLATFORMS.get(platform, platform) or "cpu")
    except (ValueError, LookupError, RecursionError):
        return None
    text = hlo.split("\n")
    frames = _frames(hlo)
    inside = _inside(text, frames)
    lines = []
    for kernel in graph.kernels:
        own = text[kernel.instruction] if kernel.instruction < len(text) else ""
        found = dict.fromkeys(_places(own, frames))
        for called in _CALLS.findall(own):
            found |= dict.fromkeys(inside.get(called, ()))
        lines.append(tuple(found))
    return KernelList(graph, tuple(lines))


def _inside(text: Sequence[str], frames: dict[str, CodePlace | None]) -> dict[str, list[CodePlace]]:
    """Return the lines of the instructions of each computation, by its name."""
    found: dict[str, list[CodePlace]] = {}
    current: list[CodePlace] = []
    for line in text:
        if line[:1].isspace():
            current += _places(line, frames)
        elif head := _HEAD.match(line):
            current = found.setdefault(head[1], [])
    return found


def _places(line: str, frames: dict[str, CodePlace | None]) -> Iterator[CodePlace]:
    """Yield the lines of the user's that one instruction names."""
    for number in _FRAME.findall(line):
        if (place := frames.get(number)) is not None:
            yield place
    for file, number in _LINE.findall(line):
        if not library_of(file):
            yield CodePlace(file, int(number))


def _frames(hlo: str) -> dict[str, CodePlace | None]:
    """Return the innermost line of the user's of each stack frame, by its number."""
    tables: dict[str, dict[str, str]] = {
        name: dict(_ROW.findall(rows)) for name, rows in _TABLE.findall(hlo)
    }
    files, functions = tables.get("FileNames", {}), tables.get("FunctionNames", {})
    locations = tables.get("FileLocations", {})
    frames = {key: dict(_NUMBER.findall(row)) for key, row in tables.get("StackFrames", {}).items()}
    found: dict[str, CodePlace | None] = {}
    for key in frames:
        place, number = None, key
        for _ in range(_DEEPEST):
            frame = frames.get(number, {})
            location = dict(_NUMBER.findall(locations.get(frame.get("file_location_id", ""), "")))
            file = files.get(location.get("file_name_id", ""), "").strip('"')
            if file and not library_of(file):
                function = functions.get(location.get("function_name_id", ""), "").strip('"')
                place = CodePlace(file, int(location.get("line", 0)), function)
                break
            # XLA prints one more than the parent's number, so that 1 is none.
            number = str(int(frame.get("parent_frame_id", 1)) - 1)
        found[key] = place
    return found
