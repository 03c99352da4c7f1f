"""Convert exceptions and warnings of user code to plain data: frames in chunks, JAX's message.

Messages are unchanged but for addresses of memory; the server rewords them for users.
This must handle any exception: with a `__str__` that raises, with a cyclic chain, with ten thousand
frames.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from jaxsight.text.inert import words
from jaxsight.tracer.isolation import code_origins
from jaxsight.tracer.observation.observed_values import Observed
from jaxsight.wire.chunks import Span, chunk_of, line_in_chunk
from jaxsight.wire.observations import Failure, Frame, Warned

_MESSAGE = 20_000
"""Characters of a message that are sent: a person reads fewer, a frame takes more."""

_CHAIN = 8
"""Causes that are sent; without a limit, a cyclic chain never ends."""

_REPEATS = 2
"""How often a place may occur in the frames; an endless recursion repeats itself."""

_FRAMES = 100
"""Frames that are sent, half of them outermost: deep recursion has thousands."""

_SPANS_KEPT = 4096
"""Places that are kept: the equations of a program share those of its lines."""

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The end of an object's or function's default `repr`, another one in each process."""

_CLAUSE = 80  # characters of an error in one

_FILTER_NOTE = "JAX has removed its internal frames"
_UNFILTERED = "UnfilteredStackTrace"
"""The cause that JAX adds with all of its own frames; it has the true causes."""

_OURS = str(Path(__file__).resolve().parent)


_WARNINGS = 50
"""Warnings of a trace that are sent; a loop may repeat one, and nobody reads more."""

_DEPRECATIONS = (DeprecationWarning, PendingDeprecationWarning, FutureWarning)
_HIDING = [("ignore", None, category, None, 0) for category in _DEPRECATIONS[:2]]
"""Filters that Python has by default (`_py_warnings.py` and `_warnings.c` of CPython)."""

_OWN_MODULES = ("warnings", "_py_warnings")
"""Modules of Python between a warning and its display; the second has the code since 3.14."""

_SHOWWARNING = warnings.showwarning
"""Python's own, or that of the process's parent code."""


class OwnNote(str):
    """A note of ours that an exception gets; all others are words of whoever raised it."""

    __slots__ = ()


class UserError(Exception):
    """User code raised or cannot be traced, which ends a request with a `Failed`.

    `observed` has the observations up to the error.
    """

    def __init__(self, failure: Failure, observed: Observed | None = None) -> None:
        super().__init__(f"{failure.type}: {failure.message}")
        self.failure = failure
        self.observed = observed if observed is not None else Observed()


def refusal(stage: str, message: str, argument: str = "", type: str = "TypeError") -> UserError:
    """Return an error of the tracer itself, in the form of a user's error."""
    return UserError(Failure(stage, f"jaxsight.{type}", message, bases=(type,), argument=argument))


def failure(
    error: BaseException, stage: str, argument: str = "", visited: frozenset[int] = frozenset()
) -> Failure:
    """Return `error` as data, with its causes; frames are ordered from outermost to innermost.

    Args:
        visited: the ids of errors that this one is a cause of.
    """
    visited |= {id(error)}
    notes = [
        str(note) if isinstance(note, OwnNote) else words(clean(str(note)))
        for note in getattr(error, "__notes__", ())
        if isinstance(note, str) and _FILTER_NOTE not in note
    ]
    cause = _cause(error)
    if isinstance(error, BaseExceptionGroup):
        # Show the first error with its frames; the notes list all of them.
        cause = cause or error.exceptions[0]
        for number, part in enumerate(error.exceptions, 1):
            notes.append(f"{number}. {_class(type(part))}: {words(message(part))}")
    follow = cause is not None and id(cause) not in visited and len(visited) < _CHAIN
    return Failure(
        stage=stage,
        type=_class(type(error)),
        message=message(error),
        bases=tuple(_class(base) for base in type(error).__mro__[1:-1]),
        frames=frames(error),
        cause=failure(cause, stage, "", visited) if cause is not None and follow else None,
        notes=tuple(notes),
        argument=argument,
    )


def _cause(error: BaseException) -> BaseException | None:
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    for _ in range(_CHAIN):
        if cause is None or type(cause).__name__ != _UNFILTERED:
            return cause
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return None


def message(error: BaseException) -> str:
    try:
        # The text of a syntax error has a place, which is that in the chunk.
        text = error.msg if isinstance(error, SyntaxError) else str(error)
    except Exception as problem:  # noqa: BLE001 - user code: the class's __str__
        text = f"<its message raised {type(problem).__name__}>"
    return clean(ADDRESS.sub("", text[:_MESSAGE]))


def one_line(error: BaseException) -> str:
    """Return the error's class and the beginning of its message, for use in a clause."""
    name = _class(type(error)).rpartition(".")[2]
    text = " ".join(message(error).split())
    left = max(_CLAUSE - len(f"{name}: “”"), 1)
    text = text if len(text) <= left else f"{text[: left - 1]}…"
    return f"{name}: {words(text)}" if text else name


def clean(text: str) -> str:
    """Escape surrogates, which UTF-8 cannot represent."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _class(cls: type) -> str:
    module = getattr(cls, "__module__", "builtins")
    name = getattr(cls, "__qualname__", cls.__name__)
    return clean(name if module == "builtins" else f"{module}.{name}")


def frames(error: BaseException) -> tuple[Frame, ...]:
    """Return the frames of the user's files, and the innermost one if it is in a library."""
    walked = [*_walk(error.__traceback__)]
    last_own = max((at for at, (_, library) in enumerate(walked) if not library), default=-1)
    out = [frame for frame, library in walked[: last_own + 1] if not library]
    beyond = walked[last_own + 1 :]
    if beyond:
        out.append(beyond[-1][0])
    if len(out) > _FRAMES:
        out = [*out[: _FRAMES // 2], *out[-(_FRAMES // 2) :]]
    if isinstance(error, SyntaxError) and (frame := _syntax(error)) is not None:
        out.append(frame)
    return tuple(out)


def _walk(traceback: TracebackType | None) -> list[tuple[Frame, bool]]:
    """Return the frames except those of JAX and the tracer, and whether each is a library's."""
    out: list[tuple[Frame, bool]] = []
    occurrences: Counter[tuple[str, int, int]] = Counter()
    while traceback is not None:
        code, lasti, line = traceback.tb_frame.f_code, traceback.tb_lasti, traceback.tb_lineno
        traceback = traceback.tb_next
        file = code.co_filename
        instruction = (file, code.co_firstlineno, lasti)
        occurrences[instruction] += 1
        match = chunk_of(file)
        if occurrences[instruction] > _REPEATS or (match is None and _is_hidden(file)):
            continue
        if match is not None:
            start, end, column, end_column = position(code, lasti)
            first = start or line or 1
            span = Span(match["chunk"], first, column, max(end, first), end_column)
            span = _moved(match, span)
            inside = max(line_in_chunk(match, line or 0), 0)
            frame = Frame(code.co_qualname, match["path"], inside, span)
            out.append((frame, False))
        else:
            out.append((Frame(code.co_qualname, clean(file), line or 0), is_library(file)))
    return out


def position(code: CodeType, instruction: int) -> Iterator[int]:
    """Return the first and the last line, and the columns of an instruction; 0 if unknown."""
    # One entry for each code unit, which has two bytes.
    positions = itertools.islice(code.co_positions(), instruction // 2, None)
    return (part or 0 for part in next(positions, (None,) * 4))


def _moved(match: re.Match[str], span: Span) -> Span:
    """Convert a span in the lines of a file's code to one in the lines of the chunk."""
    line, end_line = line_in_chunk(match, span.line), line_in_chunk(match, span.end_line)
    return replace(span, line=max(line, 1), end_line=max(end_line, 1))


def _syntax(error: SyntaxError) -> Frame | None:
    """Return the place of a syntax error in a chunk, which has no frame."""
    match = chunk_of(error.filename) if isinstance(error.filename, str) else None
    if match is None:
        return None
    # A syntax error counts characters, spans UTF-8 bytes as `ast` does.
    line, text = error.lineno or 1, error.text or ""
    offsets = (error.offset or 0, (error.end_offset or 0) if error.end_lineno == line else 0)
    start, end = (len(text[: max(at - 1, 0)].encode("utf-8", "surrogatepass")) for at in offsets)
    span = _moved(match, Span(match["chunk"], line, start, line, max(start, end)))
    return Frame("<module>", match["path"], span.line, span)


@functools.lru_cache(maxsize=_SPANS_KEPT)
def span_of(file: str, line: int, column: int, end_line: int, end_column: int) -> Span | None:
    """Return the span of a position that JAX reports, or `None` if it is not in a chunk."""
    match = chunk_of(file)
    if match is None:
        return None
    span = Span(match["chunk"], line, max(column, 0), max(end_line, line), max(end_column, 0))
    return _moved(match, span)


def _is_hidden(file: str) -> bool:
    """Return whether a frame is JAX's or ours, or of code that is not in a file."""
    return file.startswith(("<", _OURS, *_jax_folders()))


def is_own(file: str) -> bool:
    """Return whether a frame's file is one of the user's: no library's, not JAX's, not ours."""
    return chunk_of(file) is not None or not (_is_hidden(file) or is_library(file))


def is_library(file: str) -> bool:
    """Return whether a frame's file is one of an installed library, or of Python's own."""
    return code_origins.of_file(file) != code_origins.USER


@functools.cache
def _jax_folders() -> tuple[str, ...]:
    import jax
    import jaxlib

    files = (module.__file__ for module in (jax, jaxlib))
    folders = [str(Path(file).parent) for file in files if file]
    return tuple(folder + sep for folder in folders for sep in ("/", "\\"))


@contextlib.contextmanager
def collected(into: list[Warned]) -> Iterator[None]:
    """Collect Python's warnings, each with the innermost expression of a chunk that caused it."""
    with warnings.catch_warnings(), collected_from_chunk(into, calls_hook=False):
        yield


@contextlib.contextmanager
def collected_from_chunk(into: list[Warned], *, calls_hook: bool = True) -> Iterator[None]:
    """Collect Python's warnings, but keep filters or a hook that a chunk sets.

    Deprecations are shown, which Python ignores by default; filters of the user still apply. A hook
    that the user has set before is called, too; Python's own would print.
    """
    before, filters = warnings.showwarning, list(warnings.filters)
    shown = [each for each in filters if each not in _HIDING]

    def show(
        message: Any, category: type[Warning], filename: str, lineno: int, *args: Any, **kwargs: Any
    ) -> None:
        frame = sys._getframe(1)
        if len(into) < _WARNINGS and _is_of_user(category, filename, lineno, frame):
            into.append(Warned(category.__name__, clean(str(message)), innermost_span(frame)))
        if calls_hook and before is not _SHOWWARNING:
            before(message, category, filename, lineno, *args, **kwargs)

    warnings.showwarning = show
    set_warning_filters(shown)
    try:
        yield
    finally:
        # At the end, where Python's own are: what a chunk has added meanwhile precedes them.
        hiding = [each for each in filters if each in _HIDING]
        is_same = list(warnings.filters) == shown
        set_warning_filters(filters if is_same else [*warnings.filters, *hiding])
        # Otherwise the chunk has set one of its own, which stays.
        if warnings.showwarning is show:
            warnings.showwarning = before


def set_warning_filters(filters: Sequence[tuple[object, ...]]) -> None:
    """Set the filters of warnings, in the same list."""
    warnings.filters[:] = filters  # type: ignore[index]
    # Leaving the block resets the warnings that modules have shown already.
    with warnings.catch_warnings():
        pass


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
    for each in code_origins.outwards(frame):
        code = each.f_code
        if "§" in code.co_filename:
            line, end, column, end_column = position(code, each.f_lasti)
            span = span_of(code.co_filename, line, column, end, end_column)
            if span is not None:
                return span
    return None
