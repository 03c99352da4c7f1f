"""What a file's diagnostics are: the problems of its example inputs and the findings of its traces, as selected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from jaxsight.engine.answers import Finding, Severity
from jaxsight.engine.documents import Subject
from jaxsight.engine.module import Module
from jaxsight.engine.settings import Settings
from jaxsight.engine.text import Position, Range, lines_of
from jaxsight.findings.catalogue import CODES, ignored, selected

UNUSED = "JX910"

_IGNORED = re.compile(r"#\s*jaxsight:\s*ignore(?:\[([^\]]*)\])?")


def report(
    module: Module,
    subjects: Iterable[Subject],
    traced: Iterable[Finding],
    settings: Settings,
    file: PurePosixPath,
    *,
    complete: bool = False,
) -> list[Finding]:
    """All findings of a file, in order, once each.

    Left out are those that `select`, `ignore` and `perFileIgnores` exclude, and those on a line with
    `# jaxsight: ignore` or `# jaxsight: ignore[CODE, …]`.

    Args:
        file: the file's path below the project's root.
        complete: whether all was looked at that can be: then a comment that leaves nothing out is told of.
    """
    findings = [*_problems(subjects), *traced]
    in_file = settings.ignored_in(file)
    chosen = [
        f
        for f in sorted(findings, key=lambda f: not f.stale)  # a fresh one replaces its like
        if selected(f.code, settings.select, settings.ignore) and not ignored(f.code, in_file)
    ]
    if complete and UNUSED in wanted(settings, file):
        chosen += _unused(module, chosen, wanted(settings, file))
    kept = {(f.range, f.code, f.message): f for f in chosen if not _ignored(module, f)}
    return sorted(kept.values(), key=lambda f: (f.range, f.code))


def wanted(settings: Settings, file: PurePosixPath) -> tuple[str, ...]:
    """The codes that may be reported of a file."""
    in_file = settings.ignored_in(file)
    return tuple(
        code
        for code in CODES
        if selected(code, settings.select, settings.ignore) and not ignored(code, in_file)
    )


def _problems(subjects: Iterable[Subject]) -> Iterable[Finding]:
    for subject in subjects:
        if subject.broken:
            continue  # its docstring may be another one by now
        for problem in subject.examples.problems:
            range = (
                subject.name_range
                if subject.examples.source == "project"
                else problem.range.shifted(subject.chunk.first_line)
            )
            yield Finding(
                problem.code, problem.severity, range, problem.message, CODES[problem.code].url
            )


def _unused(module: Module, findings: Sequence[Finding], codes: Sequence[str]) -> Iterable[Finding]:
    """The comments that leave nothing out, as far as codes are concerned that are reported at all."""
    lines = {(f.range.start.line, f.code) for f in findings}
    for number, line in enumerate(lines_of(module.text)):
        found = _IGNORED.search(line)
        if (
            found is None
            or line[: found.start()].count('"') % 2
            or line[: found.start()].count("'") % 2
        ):
            continue
        named = [code.strip() for code in (found.group(1) or "").split(",") if code.strip()]
        here = [code for at, code in lines if at == number]
        if named:
            idle = [code for code in named if code in codes and code not in here]
            unknown = [code for code in named if code not in CODES]
            if not idle and not unknown:
                continue
            what = ", ".join(f"`{code}`" for code in (*idle, *unknown))
            message = f"Nothing on this line is reported as {what}: the comment leaves nothing out."
        elif here:
            continue
        else:
            message = "Nothing is reported on this line: the comment leaves nothing out."
        range = Range(Position(number, found.start()), Position(number, found.end()))
        yield Finding(UNUSED, Severity(CODES[UNUSED].severity), range, message, CODES[UNUSED].url)


def _ignored(module: Module, finding: Finding) -> bool:
    if finding.code == UNUSED:
        return False
    found = _IGNORED.search(module.line(finding.range.start.line))
    if found is None:
        return False
    codes = found.group(1)
    return codes is None or finding.code in {code.strip() for code in codes.split(",")}
