"""Source locations of equations. Applies to JAX 0.8 to 0.12.

Private API used: `source_info_util.user_frames`, `JaxprEqn.source_info` (`traceback`,
`name_stack.stack`, whose transformations are `source_info_util.Transform`).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jax._src import source_info_util

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.files.ours import OURS

_MOST_CACHED = 256
"""The maximum number of cached tracebacks; others are read again. The equations that an expression
creates in each iteration of a loop have equal tracebacks.
"""


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a user's file that created an equation: Python's line numbers, UTF-8 columns."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


def locations(equation: Equation) -> Iterator[Location]:
    """Yield the locations of the user's frames that created an equation, innermost first."""
    for frame in source_info_util.user_frames(equation.source_info.traceback):
        yield Location(frame.file_name, *_place(frame))


Place = tuple[int, int, int, int]
"""Line, column, last line and its column."""


def places(equation: Equation, most: int | None = None) -> tuple[tuple[str, Place], ...]:
    """Return the file and place of the innermost user frames that created an equation.

    With `most`, at most so many.

    Cheaper than `locations`, for callers that read all equations of a large program. Equations with
    equal tracebacks usually have the same tuple.
    """
    return _places(equation.source_info.traceback, most)


@functools.lru_cache(_MOST_CACHED)
def _places(traceback: Any, most: int | None) -> tuple[tuple[str, Place], ...]:
    frames = itertools.islice(source_info_util.user_frames(traceback), most)
    return tuple((frame.file_name, _place(frame)) for frame in frames)


def _place(frame: Any) -> Place:
    return (frame.start_line, frame.start_column, frame.end_line, frame.end_column)


Caller = tuple[str, str, Place]
"""The qualified name of a function, its file, and the place in it that was running."""


def callers(equation: Equation) -> tuple[Caller, ...]:
    """Return the user's functions that created an equation, outermost first.

    Equations with equal tracebacks usually have the same tuple.
    """
    return _callers(equation.source_info.traceback)


@functools.lru_cache(_MOST_CACHED)
def _callers(traceback: Any) -> tuple[Caller, ...]:
    frames = source_info_util.user_frames(traceback)
    innermost_first = [(frame.function_name, frame.file_name, _place(frame)) for frame in frames]
    return tuple(reversed(innermost_first))


def scope(equation: Equation) -> str:
    """Return the named scopes and transformations around an equation: `transpose(jvp(norm))`."""
    return str(equation.source_info.name_stack)


def named_scopes(equation: Equation) -> tuple[str, ...]:
    """Return the names of `jax.named_scope` around an equation, outermost first."""
    names: list[str] = []
    for element in equation.source_info.name_stack.stack:
        if isinstance(element, source_info_util.Scope):
            for name in str(element.name).split("/"):
                # Linen opens the scope of a method that calls that of its base class twice.
                if not _INTERNAL.fullmatch(name) and names[-1:] != [name]:
                    names.append(name)
    return tuple(names)


_INTERNAL = re.compile(r"|checkpoint|rematted_computation|.*->.*|eqx\.nn\..*")
"""Scopes that JAX opens itself (`jax/_src/ad_checkpoint.py`, `einsum`), and those of `equinox.nn`,
which are named after classes instead of modules.
"""


def is_derivative(equation: Any) -> bool:
    """Return whether differentiation created or re-created an equation."""
    return "jvp(" in str(equation.source_info.name_stack)


def is_backward(equation: Any) -> bool:
    """Return whether an equation computes cotangents.

    JAX gives it the source location of the equation that it transposes (`backward_pass` in ad.py).
    """
    return "transpose(" in str(equation.source_info.name_stack)


_FRAMES = 4
"""The number of the user's frames, from the innermost, that are examined for an assignment: those
farther out assign what many equations made."""

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]")


def location_of(equation: Equation) -> Location | None:
    """Return the location in the user's code that created an equation, if known."""
    for location in itertools.islice(locations(equation), _FRAMES):
        if not location.file.startswith(OURS):
            return location
    return None


def place(equation: Equation) -> str:
    """Return the location that created an equation as `file:line`, or an empty string.

    Paths of files in installed packages begin with the package.
    """
    at = location_of(equation)
    return f"{_INSTALLED.sub('', at.file)}:{at.line}" if at is not None else ""
