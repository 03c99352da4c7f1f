"""Where a hint of a function or line is shown, and of which function it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from jaxsight.features.hover import called
from jaxsight.features.inlay_hints.kind import ShownDocument
from jaxsight.features.model import Hint
from jaxsight.queries.programs.kernels import Kernels
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range


def head(view: View) -> Range:
    """Return the place of a function's totals: the end of the last line of its signature."""
    return head_of(view.module, view.name_range, view.subject_range)


def head_of(module: Module, name: Range, function: Range) -> Range:
    """Return the end of the last line of a function's signature, given its name and whole range."""
    return line_end(module, _head_end(module.lines, name, function))


def _head_end(lines: Sequence[str], name: Range, function: Range) -> int:
    """Return the line on which the signature of a function ends, judged by brackets."""
    line, depth = name.start.line, 0
    while line < len(lines) and line < function.end.line:
        code = lines[line].split("#")[0]
        depth += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        if depth <= 0:
            break
        line += 1
    return line


def line_end(module: Module, line: int) -> Range:
    end = Position(line, len(module.lines[line].rstrip()))
    return Range(end, end)


def of_views(shown: ShownDocument, hints: Callable[[Kernels], Iterable[Hint]]) -> Iterator[Hint]:
    """Yield the hints about the kernels of all functions, one kind's at most once on a line.

    On a line in a traced function, that function's hints are shown; on other lines those of the
    first function that reaches it. These are also shown in a function with example inputs from
    callers, whose own kernels are not those of the program.
    """
    reached: set[Position] = set()
    views = called.without_repeats(shown.views)
    for view in views:
        kernels = shown.kernels(view)
        for hint in hints(kernels) if kernels is not None else ():
            at = hint.range.start
            elsewhere = (another.subject_range for another in views if another is not view)
            if at in view.subject_range or not (
                at in reached or any(at in range for range in elsewhere)
            ):
                reached.add(at)
                yield hint
