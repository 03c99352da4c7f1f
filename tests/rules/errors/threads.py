"""Errors that people asked about in public threads, and programs that resemble them.

The Markdown files in `tests/corpora/rules/errors/threads` were written before the rules that find
these errors. Under *Errors*, a section has the thread's address and a program of the same fault;
the line of the fault ends with `# error: ` and the words that a finding must name, of which `a|b` is
either and each is a regular expression. A finding counts at a line that ends with `# here too`, as
well. Under *Near misses*, nothing may be reported.

`python -m tests.rules.errors.threads` prints which are found, and what is wrong with the others.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.projects.projects import Projects
from jaxsight.rules.finding import Finding
from jaxsight.session import Session
from jaxsight.trust import Policy, Trust
from tests.quiet import QUIET

FOLDER = Path(__file__).parents[2] / "corpora" / "rules" / "errors" / "threads"

_SECTION = re.compile(
    r"^### ([^\n]*)\n\n(?:(https://\S+)\n\n)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_ERROR = re.compile(r"  # error: (.*)$")
_HERE_TOO = re.compile(r"  # here too$")


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the corpus."""

    file: str
    title: str
    thread: str
    """The address of the thread; none for a near miss."""
    text: str
    """Without the marks."""
    lines: tuple[int, ...]
    """Where a finding counts, from 0; none for a near miss."""
    words: tuple[str, ...]
    """What it must name."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What is reported for a program."""

    program: Program
    findings: tuple[Finding, ...]

    @property
    def explained(self) -> list[Finding]:
        """The findings at the line of the error whose help names the cause."""
        return [found for found in self.at_the_error if found.help and not self.unnamed(found)]

    @property
    def at_the_error(self) -> list[Finding]:
        """The findings at the line of the error."""
        return [
            found
            for found in self.findings
            if any(
                found.range.start.line <= line <= found.range.end.line
                for line in self.program.lines
            )
        ]

    def unnamed(self, finding: Finding) -> list[str]:
        """Return the words that a finding does not name."""
        text = "\n".join(finding.lines)
        return [word for word in self.program.words if not re.search(word, text, re.IGNORECASE)]

    @property
    def right(self) -> bool:
        """Whether an error is explained, or nothing is reported for a near miss."""
        return bool(self.explained) if self.program.words else not self.findings


def programs(files: Sequence[str] = ()) -> Iterator[Program]:
    """Yield the programs of the corpus, or of some of its files."""
    for file in sorted(FOLDER.glob("*.md")):
        if files and file.stem not in files:
            continue
        text = file.read_text(encoding="utf-8")
        for section in _SECTION.finditer(text):
            yield _program(file.stem, section[1], section[2] or "", section[3])


def _program(file: str, title: str, thread: str, marked: str) -> Program:
    lines = marked.splitlines()
    errors = {n: match[1] for n, line in enumerate(lines) if (match := _ERROR.search(line))}
    others = [n for n, line in enumerate(lines) if _HERE_TOO.search(line)]
    text = "\n".join(_HERE_TOO.sub("", _ERROR.sub("", line)) for line in lines) + "\n"
    words = [word.strip() for marks in errors.values() for word in marks.split(", ")]
    return Program(file, title, thread, text, (*errors, *others), tuple(words))


async def check(chosen: Sequence[Program]) -> list[Checked]:
    """Return what is reported for programs, each in a file of its own."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(Projects(Trust(Policy.ALWAYS)))
        session.configure([folder], {"python": sys.executable, "target": "cpu", **QUIET})
        try:
            return [
                Checked(program, await _findings(session, Path(folder, f"{number}.py"), program))
                for number, program in enumerate(chosen)
            ]
        finally:
            await session.aclose()


async def _findings(session: Session, file: Path, program: Program) -> tuple[Finding, ...]:
    await asyncio.to_thread(file.write_text, program.text, encoding="utf-8")
    session.open(str(file), program.text)
    await session.background.settle(str(file))
    findings = (await session.report(str(file), kernels=False)).reported
    session.close(str(file))
    return tuple(findings)


def main() -> None:
    """Print what is found, and what is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.rules.errors.threads")
    parser.add_argument("files", nargs="*", help="raises, silent, processes, removed or further")
    parser.add_argument("-v", "--verbose", action="store_true", help="print all findings")
    parser.add_argument("-k", default="", help="programs whose title contains this")
    options = parser.parse_args()
    chosen = [p for p in programs(options.files) if options.k.lower() in p.title.lower()]
    checked = asyncio.run(check(chosen))
    for each in checked:
        if not each.right or options.verbose:
            _print(each)
    for kind, some in (
        ("errors explained", [each for each in checked if each.program.words]),
        ("near misses silent", [each for each in checked if not each.program.words]),
    ):
        right = sum(each.right for each in some)
        print(f"{right} of {len(some)} {kind}")


def _print(checked: Checked) -> None:
    program = checked.program
    print(f"{'ok ' if checked.right else 'NOT'} {program.file}: {program.title}")
    for found in checked.findings:
        place = "" if found in checked.at_the_error else " (elsewhere)"
        unnamed = f" unnamed: {', '.join(checked.unnamed(found))}" if not place else ""
        print(f"    {found.code}:{found.range.start.line + 1}{place}{unnamed}")
        for line in found.lines:
            print(f"        {line}")


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main()
