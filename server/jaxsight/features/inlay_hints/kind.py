"""A kind of inlay hints: a setting that shows it, and what it says of a document's functions.

The table of kinds is `hints.KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from jaxsight.features import caveats, inputs
from jaxsight.features.model import Hint
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.queries.traces.located_answer import View
from jaxsight.settings.schema import InlayHints
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.text.markdown import escaped
from jaxsight.text.pytree_display import ELLIPSIS


@dataclass(frozen=True, slots=True)
class HintDocument:
    """A document whose hints are shown.

    `views` are the newest answer about each function, and the last trace of each whose newest one
    failed: a half-typed name is an error, but the code around it keeps its hints.
    """

    engine: Engine
    document: Document
    views: Sequence[View]
    wanted: InlayHints
    range: Range | None
    """The part of the text to show hints in; `None` for all of it."""
    _kernels: dict[View, LocatedFigures | None] = field(
        default_factory=dict, init=False, compare=False
    )
    """The kernels of views, which several kinds describe."""

    def kernels(self, view: View) -> LocatedFigures | None:
        """Return a function's kernels on the first target, if it is traced and was compiled."""
        if view not in self._kernels:
            kernels = self.engine.programs.kernels(view) if view.is_traced else None
            self._kernels[view] = kernels
        return self._kernels[view]

    @property
    def programs(self) -> Sequence[View]:
        """The functions that are compiled by themselves, as their texts are now."""
        return [view for view in self.views if not (view.compiled_as or view.stale)]

    def holds(self, range: Range) -> bool:
        """Return whether a hint at a place is to be shown."""
        return self.range is None or self.range.touches(range)


@dataclass(frozen=True, slots=True)
class HintKind:
    """A kind of hints.

    `settings` are the names of settings `inlayHints.*`, any of which shows it; `hints` yields its
    hints, also outside of the range.
    """

    settings: tuple[str, ...]
    hints: Callable[[HintDocument], Iterable[Hint]]
    needs_kernels: bool = False
    """Whether functions are compiled for it."""

    def is_wanted(self, settings: InlayHints) -> bool:
        """Return whether the settings show it."""
        return any(getattr(settings, name) for name in self.settings)


# Where a hint of a function or line is shown, and of which function it is.


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
    shown: HintDocument,
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


def of_programs(
    hints: Callable[[HintDocument, LocatedFigures], Iterable[Hint]],
) -> Callable[[HintDocument], Iterator[Hint]]:
    """Make hints about a program ones about the kernels of all functions, once on a line.

    On a line in a traced function, that function's hints are shown; on other lines those of the
    first function that reaches it. These are also shown in a function that is a part of it.
    """

    def of_views(shown: HintDocument) -> Iterator[Hint]:
        reached: set[Position] = set()
        views = [
            view
            for view in inputs.without_repeats(shown.views)
            if not view.compiled_as or shown.kernels(view) is not None
        ]
        for view in views:
            kernels = shown.kernels(view)
            for hint in hints(shown, kernels) if kernels is not None else ():
                at = hint.range.start
                elsewhere = (another.subject_range for another in views if another is not view)
                if at in view.subject_range or not (
                    at in reached or any(at in range for range in elsewhere)
                ):
                    reached.add(at)
                    yield hint

    return of_views


# Fit labels into the width of the setting `inlayHints.width`.


@dataclass(frozen=True, slots=True)
class LabelPart:
    """A part of a label.

    Parts with a smaller rank are kept first; a label has those of rank 0 in any width.
    """

    text: str
    rank: int = 1
    shorter: tuple[str, ...] = ()
    """Forms with less, the longest first."""


def fitted(parts: Sequence[LabelPart], width: int, separator: str = " · ") -> str:
    """Return the parts in one line of at most `width` characters, in their order."""
    whole = separator.join(part.text for part in parts)
    if len(whole) <= width:
        return whole
    kept: dict[int, str] = {}
    for index in sorted(range(len(parts)), key=lambda index: parts[index].rank):
        part = parts[index]
        forms = (part.text, *part.shorter)
        fits = (t for t in forms if len(_joined({**kept, index: t}, separator)) <= width)
        if (text := next(fits, forms[-1] if part.rank == 0 else None)) is not None:
            kept[index] = text
    return _joined(kept, separator)


def listed(mark: str, texts: Sequence[str], of: Sequence[str], width: int) -> str:
    """Return a label with the first texts: `⊣ fft, scan … · step`.

    Args:
        mark: what the label begins with.
        texts: the first of them is always shown.
        of: the name of the function that they are about, if it must be said.
        width: the characters of the label.
    """
    parts = [LabelPart(f"{mark}{texts[0]}", 0), *(LabelPart(text) for text in texts[1:])]
    name = "".join(f" · {name}" for name in of)
    line = fitted(parts, width - len(name), ", ")
    if len(line) + len(name) <= width:
        return f"{line}{name}"
    return _joined({0: fitted(parts, width, ", ")}, "")


def _joined(kept: Mapping[int, str], separator: str) -> str:
    """Return the kept parts, which are not all of them."""
    line = separator.join(kept[index] for index in sorted(kept))
    return f"{line.removesuffix(ELLIPSIS).rstrip()} {ELLIPSIS}"
