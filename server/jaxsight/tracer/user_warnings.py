"""Python's warnings of user code, each with the expression that caused it."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from jaxsight.tracer.failures import clean, span_of
from jaxsight.tracer.isolation.code_origins import outwards
from jaxsight.wire.observations import Warned
from jaxsight.wire.spans import Span

_WARNINGS = 50
"""Warnings of a trace that are sent; a loop may repeat one, and nobody reads more."""

_SHOWWARNING = warnings.showwarning
"""Python's own, or that of the process's parent code."""


@contextlib.contextmanager
def collected(into: list[Warned]) -> Iterator[None]:
    """Collect Python's warnings, each with the innermost expression of a chunk that caused it."""

    def show(message: object, category: type, *_: object, **__: object) -> None:
        if len(into) < _WARNINGS:
            span = innermost_span(sys._getframe(1))
            into.append(Warned(category.__name__, clean(str(message)), span))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextlib.contextmanager
def collected_from_chunk(into: list[Warned]) -> Iterator[None]:
    """Collect Python's warnings, but keep filters or a hook that a chunk sets."""
    before = warnings.showwarning

    def show(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        span = innermost_span(sys._getframe(1))
        into.append(Warned(category.__name__, clean(str(message)), span))
        if before is not _SHOWWARNING:
            before(message, category, *args, **kwargs)

    with warnings.catch_warnings():
        pass  # resets the warnings that modules have shown already
    warnings.showwarning = show
    try:
        yield
    finally:
        if warnings.showwarning is show:
            warnings.showwarning = before


def innermost_span(frame: FrameType | None) -> Span | None:
    """Return the current place of the innermost frame in a chunk, of a frame and its callers."""
    for each in outwards(frame):
        code = each.f_code
        if "§" in code.co_filename:
            position = list(code.co_positions())[each.f_lasti // 2]
            line, end, column, end_column = (part or 0 for part in position)
            span = span_of(code.co_filename, line, column, end, end_column)
            if span is not None:
                return span
    return None
