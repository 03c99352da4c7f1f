"""The figures of optimized HLO that a run left, with the user's lines that kernels compute.

Such HLO has no paths of equations, but it has names and lines: since JAX 0.9 as tables before the
program (`HloModule`'s `StackFrames`), before that in each instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from jaxsight.compiler.hlo import read
from jaxsight.figures.figures import AnyFigures, Figures, Places
from jaxsight.hlo.metadata import HloFrames, with_names
from jaxsight.profiles.places import library_of
from jaxsight.recording.programs.record import RunProgram
from jaxsight.targets.target import Target
from jaxsight.wire.chunks import Span
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import ON_DEVICE, Compile, Compiled
from jaxsight.wire.messages.replies import Lowered, LoweredEquation

Written = Mapping[str, tuple[str, Span | None]]
"""The operation and the place of each equation, by its path; the chunk is the path of the file."""

_PLATFORMS = {"gpu": "cuda"}
"""Names of platforms for the kernel graph, by those of clients; others are the same."""


class _Lines(Places[Span]):
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
    if (found := _read(program.hlo, platform)) is None:
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
    equations = (LoweredEquation(path, operation) for path, (operation, _) in written.items())
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
    frames = HloFrames(hlo)
    paths: dict[tuple[str, Span | None], str] = {}

    def name(metadata: Mapping[str, str]) -> str:
        at = next((at for at in frames.of(metadata) if not library_of(at.chunk)), None)
        if at is None and "/" not in metadata["op_name"]:
            return metadata["op_name"]  # a parameter's name
        operation = metadata["op_name"].rpartition("/")[2]
        return f"eq[{paths.setdefault((operation, at), str(len(paths)))}]"

    return with_names(hlo, name), {path: pair for pair, path in paths.items()}
