"""What `jaxsight check` reports: findings, and which functions it examined, and how far.

Platforms track findings by names that stay the same while lines move. A finding is identified by
its rule, the function around it and its source without spaces, so that it is found again in text
that was moved or formatted. Equal ones are numbered.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from jaxsight.cli.errors import FOUND, NOTHING_EXAMINED
from jaxsight.cli.sources.notebooks import NO_CELLS, Cells
from jaxsight.features import caveats
from jaxsight.features.caveats import Completeness
from jaxsight.features.findings.examined import Examination
from jaxsight.features.findings.locked import LockedFile
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.kernels.table import Uncompiled
from jaxsight.rules.finding import Finding, Severity
from jaxsight.source.module import Module
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.text.units import count


@dataclass(frozen=True, slots=True)
class Reported:
    """A finding in a file; `source` is the file's text, which has the lines to print."""

    path: str
    source: str
    finding: Finding
    caveats: tuple[SliceCaveat, ...] = ()
    """Statements that were skipped in the slice of the finding's function."""
    fix: Fix | None = None
    """A verified fix, if fixes were requested and there is one."""
    cells: Cells = NO_CELLS
    """The cells of a notebook."""

    @property
    def code(self) -> str:
        """The source of the finding without spaces, and without what formatters add or drop."""
        start, end = self.finding.range.start, self.finding.range.end
        lines = self.source.splitlines()[start.line : end.line + 1]
        if end.line - start.line + 1 == len(lines):
            lines[-1] = lines[-1][: end.column]
        if lines:
            lines[0] = lines[0][start.column :]
        text = "".join("".join(lines).split())
        return text.replace(",)", ")").replace(",]", "]").replace("'", '"')


@dataclass(frozen=True, slots=True)
class IncompleteFunction:
    """A function of a file with skipped statements in its slice."""

    path: str
    function: Completeness
    cells: Cells = NO_CELLS


@dataclass(frozen=True, slots=True)
class RefusedFunction:
    """A function of a file that was not compiled."""

    path: str
    function: Uncompiled
    cells: Cells = NO_CELLS


@dataclass(frozen=True, slots=True)
class ExaminedFile:
    """The functions of a file that use JAX or have example inputs."""

    path: str
    functions: tuple[Examination, ...]
    cells: Cells = NO_CELLS

    @property
    def examined(self) -> tuple[Examination, ...]:
        """Those that were examined."""
        return tuple(function for function in self.functions if function.origin)

    @property
    def not_examined(self) -> tuple[Examination, ...]:
        """Those that were not, without tests and programs, which call others."""
        return tuple(f for f in self.functions if not f.origin and f.kind != "program")


@dataclass(slots=True)
class CheckResult:
    """The result for one file or several."""

    reported: tuple[Reported, ...] = ()
    incomplete: tuple[IncompleteFunction, ...] = ()
    refused: tuple[RefusedFunction, ...] = ()
    examined: tuple[ExaminedFile, ...] = ()
    locked: tuple[LockedFile, ...] = ()
    """What functions compile to, if that is compared with a lock."""
    files: int = 0
    compared: int = 0
    """The number of functions with the same program as the import."""
    imported: int = 0
    """The number of files with such functions."""

    def status(self, *, has_run_tests: bool) -> int:
        """Return the exit status."""
        informs = (Severity.INFORMATION, Severity.HINT)
        if any(reported.finding.severity not in informs for reported in self.reported):
            return FOUND
        return 0 if origins(self.examined) or has_run_tests else NOTHING_EXAMINED

    def add(self, more: CheckResult) -> None:
        """Add the result for other files."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(more, each.name))


INCOMPLETE = "incomplete"
"""The code for a function with skipped statements; it is not a rule, so it cannot be selected or
ignored.
"""
NOT_COMPILED = "not-compiled"
"""The code for a function that was not compiled, which is not a rule either."""
NO_FUNCTION = "nothing-examined"
"""The code for a whole check without findings and examined functions."""
EXAMINED = "examined"
"""The code for what was examined in a file, which is not a rule either."""


@dataclass(frozen=True, slots=True)
class LineNote:
    """What is said about a line, and is not a finding."""

    code: str
    path: str
    cells: Cells
    line: int
    text: str

    @property
    def message(self) -> str:
        """The text, after the place in a notebook."""
        return in_cell(self.cells, self.line, self.text)


def line_notes(total: CheckResult) -> Iterator[LineNote]:
    """Yield each skipped statement once, and each function that was not compiled."""
    left_out = dict.fromkeys(
        (subject.path, subject.cells, caveat)
        for subject in total.incomplete
        for caveat in subject.function.caveats
    )
    for path, cells, caveat in left_out:
        yield LineNote(INCOMPLETE, path, cells, caveat.range.start.line, caveats.reason(caveat))
    for subject in total.refused:
        function = subject.function
        line = function.range.start.line
        yield LineNote(NOT_COMPILED, subject.path, subject.cells, line, function.message)


def in_cell(cells: Cells, line: int, message: str) -> str:
    """Return a message that names the cell of a line, if there are cells."""
    return f"{cells.place(line)}: {message}" if cells else message


ORIGINS = {
    "docstring": "docstring",
    "class": "class docstring",
    "project": "settings",
    "annotations": "annotations",
    "recorded": "recorded",
    "program": "called in programs",
    "reached": "reached by others",
    "assumed": "assumed",
}
"""The origins of inputs in a summary, in the order of their precedence."""
REASONS = {
    "no-inputs": "without inputs that can be traced",
    "untried": "without inputs",
    "fails": "failing",
    "unsupported": "that cannot be traced alone",
}
"""Why functions were not examined, by kind."""


def origins(files: Sequence[ExaminedFile]) -> dict[str, int]:
    """Return how many functions were examined, by the origin of their inputs."""
    counts = Counter(function.origin for file in files for function in file.examined)
    return {origin: counts[origin] for origin in sorted(counts, key=_rank)}


def reasons(files: Sequence[ExaminedFile]) -> dict[str, int]:
    """Return how many functions were not examined, by kind."""
    counts = Counter(str(function.kind) for file in files for function in file.not_examined)
    return {kind: counts[kind] for kind in REASONS if counts[kind]}


def _rank(origin: str) -> int:
    known = list(ORIGINS)
    return known.index(origin) if origin in known else len(known) - 1


def totals(files: Sequence[ExaminedFile]) -> str:
    """Return `examined 3 of 5 functions (2 docstring, 1 assumed)`, or that there are none."""
    examined = sum(origins(files).values())
    missed = sum(reasons(files).values())
    if not examined + missed:
        return "no functions to examine"
    functions = f"{examined} of {count(examined + missed, 'function')}"
    parts = [f"{number} {ORIGINS.get(origin, origin)}" for origin, number in origins(files).items()]
    return f"examined {functions}" + (f" ({', '.join(parts)})" if parts else "")


def misses(files: Sequence[ExaminedFile]) -> str:
    """Return `2 functions not examined: 1 failing, 1 without inputs`; empty if there are none."""
    kinds = reasons(files)
    if not kinds:
        return ""
    parts = [f"{number} {REASONS[kind]}" for kind, number in kinds.items()]
    return f"{count(sum(kinds.values()), 'function')} not examined: {', '.join(parts)}"


_parsed = lru_cache(maxsize=4)(Module.parse)  # findings are in the order of files


def fingerprints(reported: Sequence[Reported]) -> list[str]:
    """Return a name for each finding, which no other finding of the same file has."""
    seen = Counter[tuple[str, str]]()
    names = []
    for each in reported:
        name = _digest(each.finding.code, enclosing_function(each), each.code)
        seen[each.path, name] += 1
        names.append(f"{name}:{seen[each.path, name]}")
    return names


def in_project(reported: Reported, fingerprint: str) -> str:
    """Return the name of a finding among those of all files below the working folder."""
    return _digest(Path(os.path.relpath(reported.path)).as_posix(), fingerprint)


def enclosing_function(reported: Reported) -> str:
    """Return the qualified name of the innermost function around a finding; empty for none."""
    if not reported.path.endswith((".py", ".ipynb")):
        return ""
    found = _parsed(reported.source).function_at(reported.finding.range.start)
    return found[1].qualname if found is not None else ""


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
