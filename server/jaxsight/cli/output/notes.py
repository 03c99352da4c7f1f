"""Print caveats in the terminal, one line with `note:` for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from jaxsight.cli.output.printing import Printer, print_note, styled
from jaxsight.cli.output.reports.reported import ExaminedFile, IncompleteFunction, RefusedFunction
from jaxsight.cli.output.reports.text import path_text
from jaxsight.cli.sources.notebooks import Cells
from jaxsight.features import caveats, inputs
from jaxsight.features.caveats import Completeness
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.text.inert import one_line
from jaxsight.text.units import some

_NAMED = 3
"""Functions that a line lists, a choice: more would wrap. The rest are counted."""


def note(path: str, caveat: SliceCaveat) -> str:
    """Return a caveat in one line.

    For example ``note: model.py:120: `train()` was not run and may change `CFG` ``.
    """
    return note_at(path, str(caveats.line(caveat)), caveats.reason(caveat))


def note_at(path: str, line: str, message: str) -> str:
    """Return a note about a line.

    For example ``note: model.py:12: `f` is not compiled for h100: it spans 8 devices``.
    """
    return f"note: {path_text(path)}:{line}: {message}"


def print_notes(printer: Printer, view: View) -> None:
    """Print all caveats of one function."""
    for caveat in view.caveats:
        print_note(printer, note(view.answer.question.path, caveat))


def print_header(printer: Printer, view: View, *, sizes: bool = False) -> None:
    """Print where a function's inputs are from, and its caveats."""
    print_inputs(printer, view, sizes=sizes)
    print_notes(printer, view)


def print_inputs(printer: Printer, view: View, *, sizes: bool = False) -> None:
    """Print where inputs are from that the user did not write: `inputs: as recorded`.

    Args:
        printer: where to print.
        view: the traced function.
        sizes: whether assumed sizes are listed, for figures that follow from them.
    """
    if inputs.is_written(view):
        return
    if view.assumed and sizes:
        header = one_line(inputs.header(view.answer.question, view.size_names))
        print_note(printer, header)
        return
    assumed = inputs.origin(view) == inputs.ASSUMED
    label = "assumed inputs:" if assumed else "inputs:"
    printer.print(styled((label, "bold cyan"), f" {inputs.described(view)}"), soft_wrap=True)


def print_file_notes(
    printer: Printer, incomplete: Sequence[IncompleteFunction], refused: Sequence[RefusedFunction]
) -> None:
    """Print a line for each skipped statement and each function that was not compiled."""
    for (path, cells), functions in groupby(incomplete, key=attrgetter("path", "cells")):
        for line in _of_file(path, cells, [function.function for function in functions]):
            print_note(printer, line)
    for function in refused:
        at = function.cells.place(function.function.range.start.line)
        print_note(printer, note_at(function.path, at, function.function.message))
    if incomplete or refused:
        printer.print()


def print_examined(printer: Printer, files: Sequence[ExaminedFile]) -> None:
    """Print a line for each function: the inputs it was examined with, or why it was not."""
    for file in files:
        for function in file.functions:
            name = f"`{function.function}`"
            if not function.origin:
                said = f"{name} is not examined: {function.reason}"
            elif function.origin == inputs.ASSUMED:
                said = f"{name} is examined with assumed inputs: {function.inputs}"
            else:
                said = f"{name} is examined, inputs {function.inputs}"
            at = file.cells.place(function.range.start.line)
            print_note(printer, note_at(file.path, at, said))
    if files:
        printer.print()


def _of_file(path: str, cells: Cells, functions: Iterable[Completeness]) -> Iterator[str]:
    """Yield a line for each skipped statement of a file, with the functions that it may affect."""
    by_caveat: dict[SliceCaveat, list[str]] = {}
    for function in functions:
        for caveat in function.caveats:
            by_caveat.setdefault(caveat, []).append(f"`{function.function}`")
    for caveat, names in sorted(by_caveat.items(), key=lambda entry: entry[0].range):
        affected = f"(may affect {some(names, _NAMED)})"
        at = cells.place(caveat.range.start.line)
        yield note_at(path, at, f"{caveats.reason(caveat)} {affected}")
