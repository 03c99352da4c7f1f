"""Print the jaxpr and shapes of a function: `jaxsight show FILE:FUNCTION`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rich.cells import cell_len

from jaxsight.cli.errors import FOUND, CommandError, or_nearest
from jaxsight.cli.notes import print_notes
from jaxsight.cli.printing import Printer, document, print_json, print_markdown, styled
from jaxsight.cli.running import Running, running
from jaxsight.cli.sources import Address, read_source
from jaxsight.cli.viewing import viewed
from jaxsight.features import caveats
from jaxsight.features.hover import function_hover, updates
from jaxsight.features.inlay_hints.shapes import shape_hints
from jaxsight.features.model import Shown
from jaxsight.queries.located_answer import View
from jaxsight.text.inert import one_line, visible
from jaxsight.wire.messages.replies import Traced

LINE_END = re.compile(r"\r\n|\r|\n")
HINT_GAP = 2
"""Minimum number of spaces between a line of the source and its shapes."""
ALIGNED_WIDTH = 76
"""Shapes are aligned after lines up to this width."""


class What(StrEnum):
    """Views of a function, besides those of installed jaxpr interpreters."""

    HOVER = "hover"
    JAXPR = "jaxpr"
    SHAPES = "shapes"


@dataclass(frozen=True, slots=True)
class LineShapes:
    """The shapes of the names that one line of the source (from 0) binds."""

    line: int
    shapes: tuple[tuple[str, str], ...]


async def show(
    address: Address,
    *,
    set_name: str | None,
    what: str,
    python: str | None,
    as_json: bool,
    allow: Sequence[str] = (),
) -> int:
    """Print a view of a function and return the exit status.

    Args:
        what: a `What`, or the name of a jaxpr interpreter.
        allow: hosts and interpreters that the project may use.

    Raises:
        CommandError: the function does not exist or has no example inputs, no tracer starts, or the
            jaxpr interpreter fails.
    """
    source = read_source(address.path)
    printer = Printer()
    async with running([address.path], {"python": python} if python else {}, allow) as run:
        view = await viewed(run, address, source, set_name, printer)
        if not isinstance(view.answer.reply, Traced):
            return FOUND
        whole = None
        if what not in (What.HOVER, What.SHAPES):
            whole = await _whole(run, address, what)
        traced_by = run.python(address.path)
    if as_json:
        print_json({**_object(view, view.answer.reply, what, whole), "python": traced_by})
        return 0
    print_notes(printer, str(address.path), view.caveats)
    match what:
        case What.HOVER:
            print_markdown(printer, function_hover(view.subject, view).markdown)
        case What.SHAPES:
            _print_shapes(printer, view, view.answer.reply)
        case _ if whole is not None:
            document(whole.text)
    return 0


async def _whole(run: Running, address: Address, what: str) -> Shown:
    try:
        return await run.get(run.session.show(str(address.path), address.function, what))
    except LookupError as error:
        raise CommandError(f"{error}{or_nearest(what, What)}") from error


def _line_shapes(view: View) -> Iterator[LineShapes]:
    """Yield the shapes of the parameters and assignments of the function, line by line."""
    inside = view.subject.range
    targets = [
        (range, observation)
        for range, observation in sorted(view.observed.items(), key=lambda item: item[0])
        if observation.kind in ("target", "parameter") and range.start in inside
    ]
    by_line: dict[int, list[tuple[str, str]]] = {}
    for hint in shape_hints(targets, view):
        name = view.module.slice_text(hint.range)
        by_line.setdefault(hint.range.end.line, []).append((name, hint.label.removeprefix(": ")))
    for line, shapes in by_line.items():
        yield LineShapes(line, tuple(shapes))


def _print_shapes(printer: Printer, view: View, traced: Traced) -> None:
    inside = view.subject.range
    last = inside.end.line + (1 if inside.end.column else 0)
    lines = LINE_END.split(view.module.text)[inside.start.line : last]
    shapes = {one.line - inside.start.line: one.shapes for one in _line_shapes(view)}
    expanded = [visible(line.expandtabs(4)) for line in lines]
    widths = [cell_len(expanded[at]) for at in shapes]
    column = max((width for width in widths if width <= ALIGNED_WIDTH), default=0) + HINT_GAP
    for at, line in enumerate(expanded):
        gap = " " * max(column - cell_len(line), HINT_GAP)
        hint = f"{gap}# {one_line(_grouped(shapes[at]))}" if at in shapes else ""
        printer.print(styled(line, (hint, "cyan")))
    printer.print(styled((f"-> {one_line(traced.outputs)}", "cyan")))
    if words := updates(traced):
        printer.print(styled((one_line(words), "cyan")))


def _grouped(shapes: Sequence[tuple[str, str]]) -> str:
    """Return `q, k: f32[8], n: i32[]`: adjacent names with the same shape share it."""
    groups: list[tuple[list[str], str]] = []
    for name, shape in shapes:
        if groups and groups[-1][1] == shape:
            groups[-1][0].append(name)
        else:
            groups.append(([name], shape))
    return ", ".join(f"{', '.join(names)}: {shape}" for names, shape in groups)


def _object(view: View, traced: Traced, what: str, whole: Shown | None) -> dict[str, Any]:
    """Return the object that `--json` prints: common keys, and those of the view."""
    shown: dict[str, Any] = {
        "filename": view.answer.question.path,
        "function": view.subject.name,
        "set": view.answer.question.set.name,
        "parameters": [{"name": name, "value": value} for name, value in traced.parameters],
        "outputs": traced.outputs,
        "updates": list(traced.updates),
        "left_out": list(traced.left_out),
        "equations": traced.equations,
        "constants": [{"type": text, "bytes": size} for text, size in traced.constants],
        **caveats.record(view.caveats),
    }
    match what:
        case What.HOVER:
            words = caveats.markdown(view.caveats)
            shown["markdown"] = function_hover(view.subject, view, notes=words).markdown
        case What.JAXPR if whole is not None:
            shown["jaxpr"] = whole.text
        case What.SHAPES:
            shown["shapes"] = [
                {"row": one.line + 1, "name": name, "value": value}
                for one in _line_shapes(view)
                for name, value in one.shapes
            ]
        case _ if whole is not None:
            shown["interpreter"] = what
            shown["text"] = whole.text
    return shown
