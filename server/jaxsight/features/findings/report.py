"""Select a file's diagnostics: problems of its example inputs and findings of its traces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from jaxsight.examples.problems import listed
from jaxsight.queries.documents import Subject
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules import RULES, rule_of, wording
from jaxsight.rules.finding import Finding, Severity, finding_of
from jaxsight.rules.rule import Rule
from jaxsight.rules.selection import ignored, selected
from jaxsight.settings.schema import Settings
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range, lines_of
from jaxsight.text.inert import clause
from jaxsight.text.units import some

UNUSED = "JX910"

_NAMED = 3
"""Functions that a note lists, a choice: a line of a terminal."""

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
    """Return all findings of a file in order, without duplicates.

    Findings are suppressed if `select`, `ignore` and `perFileIgnores` exclude them, or if their
    line has a comment `# jaxsight: ignore` or `# jaxsight: ignore[CODE, …]`.

    Args:
        file: the file's path below the project's root.
        complete: whether all analyses are done: then comments that suppress nothing are reported.
    """
    findings = [*_problems(subjects), *traced]
    in_file = settings.ignored_in(file)
    chosen = [
        f
        for f in sorted(findings, key=lambda f: not f.stale)  # a current one replaces a stale one
        if selected(f.code, settings.select, settings.ignore) and not ignored(f.code, in_file)
    ]
    certain = {(f.code, f.range.start.line) for f in chosen}
    chosen = [f for f in chosen if (RULES[f.code].unless, f.range.start.line) not in certain]
    if complete and UNUSED in wanted(settings, file):
        chosen += _unused(module, chosen, wanted(settings, file))
    by_content = {(f.range, f.code, f.message): f for f in chosen if not is_ignored(module, f)}
    return sorted(by_content.values(), key=lambda f: (f.range, f.code))


def one_a_line(
    pairs: Sequence[tuple[View, Finding]],
) -> list[tuple[View, Finding]]:
    """Return the findings of traces, one for each place, in order.

    A finding in a helper that several functions call is reported once, with a note that lists them.
    A rule about the program as a whole reports one finding per line.
    """
    groups: dict[object, list[tuple[View, Finding]]] = defaultdict(list)
    for view, finding in pairs:
        once = RULES[finding.code].once_a_line
        place = finding.range.start.line if once else finding.range
        groups[finding.code, place].append((view, finding))
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[tuple[View, Finding]]) -> tuple[View, Finding]:
    """Return the most certain and severe finding of one place, with the functions that it is of."""
    ranks = list(Severity)
    view, finding = min(
        group,
        key=lambda pair: (pair[1].stale, pair[1].assumed != "", ranks.index(pair[1].severity)),
    )
    # Functions whose text is incomplete are not listed: their findings are about an older text.
    current = (owner for owner, grouped in group if grouped.stale == finding.stale)
    names = list(dict.fromkeys(f"`{owner.subject.name}`" for owner in current))
    if len(names) == 1:
        return view, finding
    note = f"traced from {some(names, _NAMED, ' and ')}"
    return view, replace(finding, notes=(*finding.notes, note))


def wanted(settings: Settings, file: PurePosixPath) -> tuple[str, ...]:
    """Return the codes that may be reported for a file."""
    in_file = settings.ignored_in(file)
    return tuple(
        code
        for code in RULES
        if selected(code, settings.select, settings.ignore) and not ignored(code, in_file)
    )


def _problems(subjects: Iterable[Subject]) -> Iterable[Finding]:
    """Yield the problems of example inputs, each at its place."""
    for subject in subjects:
        if subject.broken:
            continue  # its docstring may have changed
        for problem in subject.examples.problems:
            yield finding_of(
                problem.code,
                subject.place(problem.range),
                problem.message,
                severity=problem.severity,
                help=problem.help,
            )


def _unused(module: Module, findings: Sequence[Finding], codes: Sequence[str]) -> Iterable[Finding]:
    """Yield a finding for each comment that suppresses nothing.

    Only codes that are reported for this file count.
    """
    lines = {(f.range.start.line, f.code) for f in findings}
    for number, line in enumerate(lines_of(module.text)):
        comment = _IGNORED.search(line)
        if comment is None or any(line[: comment.start()].count(quote) % 2 for quote in "'\""):
            continue
        named = _named(comment.group(1) or "")
        here = [code for at, code in lines if at == number]
        idle = [
            text
            for text, rule in named.items()
            if rule is not None and rule.code in codes and rule.always and rule.code not in here
        ]
        unknown = [text for text, rule in named.items() if rule is None]
        if idle:
            message = f"unused `jaxsight: ignore` (no {listed(idle)} on this line)"
        elif unknown:
            message = f"unknown rule in `jaxsight: ignore`: {listed(unknown)}"
        elif named or here:
            continue
        else:
            message = "unused `jaxsight: ignore` (nothing is reported on this line)"
        subject = "the comment" if not here else listed((*idle, *unknown))
        yield finding_of(
            UNUSED,
            Range(Position(number, comment.start()), Position(number, comment.end())),
            clause(message, wording.MOST),
            help=f"remove {subject}",
            notes=(f"unknown rule: {listed(unknown)}",) if idle and unknown else (),
        )


def is_ignored(module: Module, finding: Finding) -> bool:
    """Return whether a comment on its line suppresses a finding."""
    comment = _IGNORED.search(module.line(finding.range.start.line))
    if finding.code == UNUSED or comment is None:
        return False
    rules = _named(comment[1]).values() if comment[1] is not None else ()
    return comment[1] is None or any(r is not None and r.code == finding.code for r in rules)


def _named(text: str) -> dict[str, Rule | None]:
    """Return the rules that a comment names, by code or name; `None` for unknown ones."""
    return {word: rule_of(word) for part in text.split(",") if (word := part.strip())}
