"""Where equations were made. Holds for JAX 0.8 to 0.12.

Private API used: `source_info_util.user_frames`, `JaxprEqn.source_info.traceback`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jax._src import source_info_util


@dataclass(frozen=True, slots=True)
class Location:
    """Where code of a user's file made an equation: Python's lines, UTF-8 columns."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


def locations(equation: Any) -> Iterator[Location]:
    """The frames of the user's that made an equation, innermost first."""
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        yield Location(
            frame.file_name,
            frame.start_line,
            frame.start_column,
            frame.end_line,
            frame.end_column,
        )


Place = tuple[int, int, int, int]
"""Line, column, last line and its column."""


def places(equation: Any) -> Iterator[tuple[str, Place]]:
    """The same as files and places: for those who ask for all equations of a large program."""
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        place = (frame.start_line, frame.start_column, frame.end_line, frame.end_column)
        yield frame.file_name, place


Caller = tuple[str, str, Place]
"""The qualified name of a function, its file, and the place in it that was running."""


def callers(equation: Any) -> list[Caller]:
    """The user's functions that made an equation, outermost first."""
    return [
        (
            frame.function_name,
            frame.file_name,
            (frame.start_line, frame.start_column, frame.end_line, frame.end_column),
        )
        for frame in source_info_util.user_frames(equation.source_info.traceback)
    ][::-1]


def maker(equation: Any) -> str:
    """The qualified name of the function that made an equation: the user's, or one of JAX's
    solvers.
    """
    traceback = equation.source_info.traceback
    for frame in traceback.frames if traceback is not None else ():
        if not _CORE.search(frame.file_name):
            return str(frame.function_name)
    return ""


_CORE = re.compile(r"[/\\]jax[/\\](?!experimental[/\\]|_src[/\\]scipy[/\\])")
"""Files of JAX's own, without those that are written as users write."""


def scope(equation: Any) -> str:
    """The names of the scopes and transformations that an equation was made in,
    `transpose(jvp(norm))`.
    """
    return str(equation.source_info.name_stack)
