"""What a file's diagnostics are: the problems of its example inputs and the findings of its traces, as selected."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from jaxsight.engine.answers import Finding
from jaxsight.engine.documents import Subject
from jaxsight.engine.module import Module
from jaxsight.engine.settings import Settings
from jaxsight.findings.catalogue import CODES, ignored, selected

_IGNORED = re.compile(r"#\s*jaxsight:\s*ignore(?:\[([^\]]*)\])?")


def report(
    module: Module,
    subjects: Iterable[Subject],
    traced: Iterable[Finding],
    settings: Settings,
    file: PurePosixPath,
) -> list[Finding]:
    """All findings of a file, in order, once each.

    Left out are those that `select`, `ignore` and `perFileIgnores` exclude, and those on a line with
    `# jaxsight: ignore` or `# jaxsight: ignore[CODE, …]`.

    Args:
        file: the file's path below the project's root.
    """
    findings = [*_problems(subjects), *traced]
    in_file = settings.ignored_in(file)
    kept = {
        (f.range, f.code, f.message): f
        for f in sorted(findings, key=lambda f: not f.stale)  # a fresh one replaces its like
        if selected(f.code, settings.select, settings.ignore)
        and not ignored(f.code, in_file)
        and not _ignored(module, f)
    }
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


def _ignored(module: Module, finding: Finding) -> bool:
    found = _IGNORED.search(module.line(finding.range.start.line))
    if found is None:
        return False
    codes = found.group(1)
    return codes is None or finding.code in {code.strip() for code in codes.split(",")}
