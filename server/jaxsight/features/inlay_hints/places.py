"""Where a hint of a function or line is shown, and of which function it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from jaxsight.features import caveats, inputs
from jaxsight.features.inlay_hints.budget import listed
from jaxsight.features.inlay_hints.kind import ShownDocument
from jaxsight.features.model import Hint
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.text.markdown import escaped

T = TypeVar("T")


def head(view: View) -> Range:
    """Return the place of a function's totals: the end of the last line of its signature."""
    return head_of(view.module, view.name_range, view.subject_range)


def head_of(module: Module, name: Range, function: Range) -> Range:
    """Return the end of the last line of a function's signature, as judged by brackets.

    Args:
        module: the text.
        name: the place of the function's name.
        function: that of the whole definition.
    """
    lines, line, depth = module.lines, name.start.line, 0
    while line < len(lines) and line < function.end.line:
        code = lines[line].split("#")[0]
        depth += sum(map(code.count, "([{")) - sum(map(code.count, ")]}"))
        if depth <= 0:
            break
        line += 1
    return line_end(module, line)


def line_end(module: Module, line: int) -> Range:
    end = Position(line, len(module.lines[line].rstrip()))
    return Range(end, end)


def line_hints(
    shown: ShownDocument,
    kernels: LocatedFigures,
    sign: str,
    placed: Iterable[tuple[Range | None, T]],
    texts: Callable[[Sequence[T]], Sequence[str]],
    described: Callable[[T], str],
    most: int,
    end: str = "",
) -> Iterator[Hint]:
    """Yield a hint for each line at whose end there is something of a function's program.

    Args:
        shown: the document.
        kernels: of the function.
        sign: what labels begin with.
        placed: what is shown, each with its place.
        texts: returns the parts of a label about what is on one line.
        described: returns the paragraph of a tooltip about one of them, in Markdown.
        most: how many of them have a paragraph; further ones are counted.
        end: the last paragraph of a tooltip.
    """
    view = kernels.view
    lines: dict[int, list[T]] = {}
    for place, item in placed:
        if place is not None and view.supports(place):
            lines.setdefault(place.end.line, []).append(item)
    own, notice = view.subject_range, caveats.notice(view)
    for line, items in lines.items():
        at = line_end(view.module, line)
        # A hint in a helper names the traced function.
        of = [] if own.start <= at.start <= own.end else [view.subject.title]
        more = escaped(f"and {len(items) - most} more") if len(items) > most else ""
        parts = (notice, *map(described, items[:most]), more, end)
        label = listed(f"{sign} {caveats.mark(view)}", texts(items), of, shown.wanted.width)
        yield Hint(at, label, "\n\n".join(filter(None, parts)), view.stale)


def of_views(
    shown: ShownDocument, hints: Callable[[LocatedFigures], Iterable[Hint]]
) -> Iterator[Hint]:
    """Yield the hints about the kernels of all functions, one kind's at most once on a line.

    On a line in a traced function, that function's hints are shown; on other lines those of the
    first function that reaches it. These are also shown in a function that is a part of it.
    """
    reached: set[Position] = set()
    views = [
        view
        for view in inputs.without_repeats(shown.views)
        if not view.compiled_as or shown.kernels(view) is not None
    ]
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
