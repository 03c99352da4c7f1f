"""Whether each case is about what it says: without its marked statements the truth is another
one.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.truth import oracle
from tests.truth.cases import Case
from tests.truth.measure import request, scratch, write

UNMARKED = {"everyday"}
"""Families whose cases need no effect: there it is what people write that counts."""


def report(cases: Sequence[Case], python: str, jobs: int) -> int:
    """Print each case that does not hold what it says; 1 when there is one."""
    problems = dict(wrong(cases, python, jobs))
    for name, problem in problems.items():
        print(f"{name}: {problem}")
    print(f"{len(cases)} cases, {len(problems)} with problems")
    return 1 if problems else 0


def wrong(cases: Sequence[Case], python: str, jobs: int) -> list[tuple[str, str]]:
    """Cases that do not depend on their marked effect, or have no truth, with what is wrong."""
    problems: list[tuple[str, str]] = []
    with scratch() as folder:
        whole = oracle.truths(
            [_request(folder / f"{c.family}__{c.name}", c, dict(c.files)) for c in cases],
            python,
            jobs,
        )
        marked = [case for case in cases if case.without is not None]
        without = oracle.truths(
            [
                _request(folder / f"{c.family}__{c.name}__without", c, dict(c.without or ()))
                for c in marked
            ],
            python,
            jobs,
        )
    others = {(c.family, c.name): truth for c, truth in zip(marked, without, strict=True)}
    for case, truth in zip(cases, whole, strict=True):
        name = f"{case.family}/{case.name}"
        other = others.get((case.family, case.name))
        if not truth:
            problems.append((name, "no function with example inputs"))
        elif any(each.error in oracle.NO_TRUTH for each in truth.values()):
            problems.append((name, f"no truth: {truth}"))
        elif other is None and case.family not in UNMARKED and not case.edits:
            problems.append((name, "no marked effect"))
        elif other == truth:
            problems.append((name, "does not depend on what is marked"))
        elif not case.edits:
            unexpected = [t for f, t in truth.items() if t.error and not f.endswith("_raises")]
            problems += [(name, f"{t.error} in {t.stage}: {t.message}") for t in unexpected[:1]]
    return problems


def _request(folder: Path, case: Case, files: dict[str, str]) -> oracle.Request:
    write(folder, files)
    return request(folder, case.main, files[case.main], list(files.values()))
