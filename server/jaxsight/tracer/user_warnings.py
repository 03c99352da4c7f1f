"""Python's warnings of user code, each with the expression that caused it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from jaxsight.tracer.failures import clean, span_of
from jaxsight.tracer.isolation.code_origins import outwards
from jaxsight.wire.observations import Warned
from jaxsight.wire.spans import Span

_WARNINGS = 50
"""Warnings of a trace that are sent; a loop may repeat one, and nobody reads more."""

_DEPRECATIONS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
_HIDING = [
    ("ignore", None, category, None, 0)
    for category in (DeprecationWarning, PendingDeprecationWarning)
]
"""Filters that Python has by default (`_py_warnings.py` and `_warnings.c` of CPython)."""

_OWN_MODULES = ("warnings", "_py_warnings")
"""Modules of Python between a warning and its display; the second has the code since 3.14."""

_SHOWWARNING = warnings.showwarning
"""Python's own, or that of the process's parent code."""


@contextlib.contextmanager
def collected(into: list[Warned]) -> Iterator[None]:
    """Collect Python's warnings, each with the innermost expression of a chunk that caused it."""
    with warnings.catch_warnings(), collected_from_chunk(into, calls_hook=False):
        yield


@contextlib.contextmanager
def collected_from_chunk(into: list[Warned], *, calls_hook: bool = True) -> Iterator[None]:
    """Collect Python's warnings, but keep filters or a hook that a chunk sets.

    A hook that the user has set before is called, too; Python's own would print.
    """
    before = warnings.showwarning

    def show(
        message: Any, category: type[Warning], filename: str, lineno: int, *args: Any, **kwargs: Any
    ) -> None:
        frame = sys._getframe(1)
        if len(into) < _WARNINGS and _is_of_user(category, filename, lineno, frame):
            into.append(Warned(category.__name__, clean(str(message)), innermost_span(frame)))
        if calls_hook and before is not _SHOWWARNING:
            before(message, category, filename, lineno, *args, **kwargs)

    warnings.showwarning = show
    try:
        with _deprecations():
            yield
    finally:
        # Otherwise the chunk has set one of its own, which stays.
        if warnings.showwarning is show:
            warnings.showwarning = before


@contextlib.contextmanager
def _deprecations() -> Iterator[None]:
    """Have deprecations shown, which Python ignores by default; filters of the user still apply."""
    before = list(warnings.filters)
    shown = [each for each in before if each not in _HIDING]
    _set_filters(shown)
    try:
        yield
    finally:
        # At the end, where Python's own are: what a chunk has added meanwhile precedes them.
        hiding = [each for each in before if each in _HIDING]
        is_same = list(warnings.filters) == shown
        _set_filters(before if is_same else [*warnings.filters, *hiding])


def _set_filters(filters: Sequence[tuple[object, ...]]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    with warnings.catch_warnings():
        pass  # resets the warnings that modules have shown already


def _is_of_user(category: type, filename: str, lineno: int, frame: FrameType | None) -> bool:
    """Return whether a warning is about the user's own code, for one about a deprecation.

    Libraries call deprecated functions of other libraries, too, which is their affair. A warning is
    about the frame that `stacklevel` names; without that, about the caller of the function that
    warned, for which there is no other frame.
    """
    if not issubclass(category, _DEPRECATIONS) or "§" in filename:
        return True
    while frame is not None and frame.f_globals.get("__name__") in _OWN_MODULES:
        frame = frame.f_back
    if frame is None or (frame.f_code.co_filename, frame.f_lineno) != (filename, lineno):
        return False
    return frame.f_back is not None and "§" in frame.f_back.f_code.co_filename


def innermost_span(frame: FrameType | None) -> Span | None:
    """Return the current place of the innermost frame in a chunk, of a frame and its callers."""
    for each in outwards(frame):
        code = each.f_code
        if "§" in code.co_filename:
            # One entry for each code unit, which has two bytes.
            position = list(code.co_positions())[each.f_lasti // 2]
            line, end, column, end_column = (part or 0 for part in position)
            span = span_of(code.co_filename, line, column, end, end_column)
            if span is not None:
                return span
    return None
