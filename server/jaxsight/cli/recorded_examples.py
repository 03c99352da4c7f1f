"""Write recorded calls where people write example inputs: docstrings, or `pyproject.toml`."""

from __future__ import annotations

import enum
import re
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.cli.output.printing import write_file
from jaxsight.examples import choice
from jaxsight.examples.sets import OutsideSet
from jaxsight.features.proposals.actions import section_edit
from jaxsight.files import reading
from jaxsight.projects.projects import SETTINGS_FILE
from jaxsight.queries.documents import module_name
from jaxsight.recording.recorded_file import Functions, RecordedCall
from jaxsight.rules.fixing.context import applied
from jaxsight.settings.example_settings import with_entries
from jaxsight.settings.reading import merge, read_project
from jaxsight.settings.schema import Settings
from jaxsight.source.definitions import Function
from jaxsight.source.module import Module
from jaxsight.source.text import Edit
from jaxsight.text import units
from jaxsight.text.inert import one_line

_WIDTH = 96
"""Columns of a recorded example: 100, as formatters allow, less the indentation of a docstring."""


class WrittenTo(enum.StrEnum):
    """Where examples are written."""

    DOCSTRING = "docstring"
    PYPROJECT = "pyproject"


def write_examples(root: Path, functions: Functions, place: WrittenTo) -> Iterator[str]:
    """Write the most frequent call of each function that has no example inputs yet.

    Yields what was done, for people.

    Raises:
        CommandError: a file cannot be written.
    """
    settings = merge(read_project(str(root)), {})
    if place is WrittenTo.PYPROJECT:
        yield from _write_project(root, functions, settings)
        return
    for file, of_file in groupby(sorted(functions.items()), key=lambda item: item[0][0]):
        calls = {name: own[0] for (_, name), own in of_file}
        path = root / file
        with failing_on(reading.UnreadableError):
            reading.inside(root, file)
            source = reading.source(path)
        edits = dict(_edits(path, source, calls, settings))
        if edits:
            content = applied(source, list(edits.values()))
            write_file(path, content.encode(reading.encoding(reading.data(path))))
        yield one_line(f"{file}: added example inputs to {units.count(len(edits), 'function')}")
        left_out = [name for name in calls if name not in edits]
        if left_out:
            yield one_line(f"  not added, as they have some or have changed: {', '.join(left_out)}")


def _edits(
    path: Path, source: str, calls: dict[str, RecordedCall], settings: Settings
) -> Iterator[tuple[str, Edit]]:
    """Yield the edit for each function whose only example inputs are recorded ones."""
    for chunk, function in Module.parse(source).functions:
        call = calls.get(function.qualname)
        if call is not None and _is_wanted(path, function, call, settings):
            lines = _lines(function, call)
            yield function.qualname, section_edit(function, lines).shifted(chunk.first_line)


def _is_wanted(path: Path, function: Function, call: RecordedCall, settings: Settings) -> bool:
    """Return whether a function has no other example inputs, and still takes recorded ones."""
    read = choice.of(
        function,
        sizes=settings.sizes,
        project=settings.examples.get(f"{module_name(str(path))}:{function.qualname}"),
        mesh=settings.mesh,
        outside=[OutsideSet("recorded", "", call.inputs)],
    )
    return read.source == "recorded"


def _lines(function: Function, call: RecordedCall) -> list[str]:
    """Return the lines of a call, without those that only repeat a default.

    Parameters with equal examples share a line.
    """
    defaults = {p.name: p.default for p in function.parameters}
    pairs = [re.split(r"(?=: | = )", line, maxsplit=1) for line in call.inputs.split("\n")]
    kept = [
        (name, example)
        for name, example in pairs
        if defaults.get(name) not in (example[2:], example[3:])
    ]
    lines: list[str] = []
    for example, group in groupby(kept, key=lambda pair: pair[1]):
        names = [name for name, _ in group]
        if example.startswith(": ") and "mesh" not in names:
            lines += _wrapped(", ".join(names) + example)
        else:
            lines += [line for name in names for line in _wrapped(name + example)]
    return lines


def _wrapped(line: str) -> list[str]:
    """Return a line, continued on further ones with a deeper indent if it is long."""
    if len(line) <= _WIDTH or re.search(r"'[^']* [^']*'", line):
        return [line]
    return textwrap.wrap(
        line, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def _write_project(root: Path, functions: Functions, settings: Settings) -> Iterator[str]:
    """Add entries to `[tool.jaxsight.examples]` of the project."""
    path = root / SETTINGS_FILE
    with failing_on(reading.UnreadableError):
        text = reading.source(path) if reading.exists(path) else ""
        sources = {file: reading.source(root / file) for file, _ in functions}
    entries: dict[str, str] = {}
    for (file, name), calls in sorted(functions.items()):
        for _, function in Module.parse(sources[file]).functions:
            if function.qualname == name and _is_wanted(root / file, function, calls[0], settings):
                key = f"{module_name(str(root / file))}:{name}"
                entries[key] = "\n".join(_lines(function, calls[0]))
    if entries:
        changed = with_entries(text, entries)
        if changed is None:
            raise CommandError(
                f"cannot add examples to {SETTINGS_FILE}; write them in a table "
                "`[tool.jaxsight.examples]`"
            )
        write_file(path, changed.encode())
    yield f"{SETTINGS_FILE}: added example inputs of {units.count(len(entries), 'function')}"
