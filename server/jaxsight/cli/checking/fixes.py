"""Apply verified fixes until none are left: `jaxsight check --fix`.

Each round applies at most one fix to a top-level statement; the next one verifies the fixes of the
changed text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.cli.command_run import CommandRun
from jaxsight.cli.errors import CommandError, failing_on
from jaxsight.cli.output.printing import Printer, Text, styled, write_file
from jaxsight.cli.output.reports.text import path_text
from jaxsight.cli.sources.arguments import SourceFile
from jaxsight.features.fixes.verifier import Fix
from jaxsight.files import reading
from jaxsight.rules.fixing.context import applied
from jaxsight.source.module import Module
from jaxsight.text.inert import one_line
from jaxsight.text.units import count

ROUNDS = 20
"""Rounds for a file, as fixes that undo each other would go on forever: a choice. With fewer, fixes
that others enable are left to the next run; each round traces and compiles the file again."""


@dataclass(slots=True)
class FixLog:
    """The fixes applied so far, and the number of those that need `--unsafe-fixes`."""

    unsafe: bool
    """Also apply fixes that may change signatures or values."""
    lines: list[Text] = field(default_factory=list)
    hidden: int = 0

    @staticmethod
    def of(files: Sequence[SourceFile], *, unsafe: bool) -> FixLog:
        """Return an empty log for files that the command line names.

        Raises:
            CommandError: one cannot be fixed.
        """
        if any(not file.is_fixable for file in files if file.is_argument):
            raise CommandError("fixes are applied to Python files only, not to stdin and notebooks")
        return FixLog(unsafe)

    def add(self, path: str, fix: Fix) -> None:
        """Record an applied fix."""
        location = f"{path_text(path)}:{fix.finding.range.start.line + 1}: "
        title = f" {one_line(fix.title)}"
        self.lines.append(styled((location, "bold"), (fix.finding.code, "cyan"), title))

    def print(self, printer: Printer) -> None:
        """Print the fixes, and their number."""
        for line in self.lines:
            printer.print(line)
        printer.print(self.summary)

    @property
    def summary(self) -> str:
        """The number of fixes, in a line."""
        fixed = f"Fixed {count(len(self.lines), 'finding')}." if self.lines else "Nothing fixed."
        if not self.hidden:
            return fixed
        hidden = count(self.hidden, "hidden fix", "hidden fixes")
        return f"{fixed} {hidden} can be enabled with --unsafe-fixes."


async def apply_fixes(run: CommandRun, path: Path, source: str, log: FixLog) -> str:
    """Apply fixes to an open file, write it, and return its new text.

    Raises:
        CommandError: the file cannot be written.
    """
    original = source
    for _ in range(ROUNDS):
        fixes = await run.get(run.session.fixes(str(path)))
        # A fix is proved for the inputs that the function was traced with, and these are assumed.
        fixes = [fix for fix in fixes if not fix.finding.assumed]
        allowed = [fix for fix in fixes if fix.safe or log.unsafe]
        chosen = _independent(Module.parse(source), allowed)
        if not chosen:
            log.hidden += sum(not fix.safe for fix in fixes)
            break
        source = applied(source, [edit for fix in chosen for edit in fix.edits])
        run.session.change(str(path), source)
        for fix in chosen:
            log.add(str(path), fix)
    if source != original:
        kinds = (reading.UnreadableError, SyntaxError, UnicodeEncodeError)
        with failing_on(*kinds, about=f"cannot write {path}: "):
            content = source.encode(reading.encoding(reading.data(path)))
        write_file(path, content)
    return source


def _independent(module: Module, fixes: list[Fix]) -> list[Fix]:
    """Return fixes that have no top-level statement in common, in order."""
    chosen: list[Fix] = []
    chosen_lines: set[int] = set()
    for fix in fixes:
        chunks = [module.chunk_at(edit.range.start) for edit in fix.edits]
        lines = {chunk.first_line if chunk is not None else -1 for chunk in chunks}
        if not lines & chosen_lines:
            chosen_lines |= lines
            chosen.append(fix)
    return chosen
