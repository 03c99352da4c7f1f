"""Apply verified fixes until none are left: `jaxsight check --fix`.

Each round applies at most one fix to a top-level statement; the next one verifies the fixes of the
changed text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.printing import Text, styled
from jaxsight.cli.reports import text as words
from jaxsight.cli.running import Running
from jaxsight.cli.writing import write
from jaxsight.features.fixes.verifier import Fix
from jaxsight.files import reading
from jaxsight.rules.fixing.context import applied
from jaxsight.source.module import Module
from jaxsight.text.inert import one_line

ROUNDS = 20
"""Maximum number of rounds for a file."""


@dataclass(slots=True)
class Fixed:
    """The fixes applied so far, and the number of those that need `--unsafe-fixes`."""

    lines: list[Text] = field(default_factory=list)
    hidden: int = 0

    @property
    def summary(self) -> str:
        """The number of fixes, in a line."""
        count = len(self.lines)
        said = f"Fixed {count} finding{'' if count == 1 else 's'}." if count else "Nothing fixed."
        if not self.hidden:
            return said
        more = f"{self.hidden} hidden fix{'' if self.hidden == 1 else 'es'}"
        return f"{said} {more} can be enabled with --unsafe-fixes."


async def fix(run: Running, path: Path, source: str, *, unsafe: bool, into: Fixed) -> str:
    """Apply fixes to an open file, write it, and return its new text.

    Raises:
        CommandError: the file cannot be written.
    """
    shown, begun = words.shown_path(str(path)), source
    for _ in range(ROUNDS):
        found = await run.get(run.session.fixes(str(path)))
        chosen = _apart(Module.parse(source), [each for each in found if each.safe or unsafe])
        if not chosen:
            into.hidden += sum(not each.safe for each in found)
            break
        source = applied(source, [edit for each in chosen for edit in each.edits])
        run.session.change(str(path), source)
        for each in chosen:
            place = f"{shown}:{each.finding.range.start.line + 1}: "
            title = one_line(each.title)
            into.lines.append(styled((place, "bold"), (each.finding.code, "cyan"), f" {title}"))
    if source != begun:
        _write(path, source)
    return source


def _apart(module: Module, fixes: list[Fix]) -> list[Fix]:
    """Return fixes that have no top-level statement in common, in order."""
    chosen: list[Fix] = []
    taken: set[int] = set()
    for fix in fixes:
        places = [module.chunk_at(edit.range.start) for edit in fix.edits]
        lines = {chunk.first_line if chunk is not None else -1 for chunk in places}
        if not lines & taken:
            taken |= lines
            chosen.append(fix)
    return chosen


def _write(path: Path, source: str) -> None:
    try:
        content = source.encode(reading.encoding(reading.data(path)))
    except (reading.UnreadableError, SyntaxError, UnicodeEncodeError) as error:
        raise CommandError(f"cannot write {path}: {error}") from error
    write(path, content)
