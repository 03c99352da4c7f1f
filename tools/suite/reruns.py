"""Runs again, one test at a time, what failed while other tests ran beside it.

Many tests wait for real processes and editors, so that a busy machine fails some that are right. A
test that passes by itself was such a one; it is named, and what fails twice has failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tools.suite.parts import PANEL
from tools.suite.results import ERROR, FAILED, PASSED, RERUN, Case
from tools.suite.running import Job, Outcome

MOST = 20
"""Cases that are run again: of 9,700, a machine at half the usual speed failed 7."""


def rerun(outcomes: Iterable[Outcome], finish: Callable[[list[Job]], list[Outcome]]) -> None:
    """Run what failed again, and mark in `outcomes` what passed now.

    Args:
        outcomes: Of all jobs.
        finish: Runs jobs, one after the other.
    """
    failed: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.job.environment != PANEL:  # of node, which waits for no process
            names = [case.name for case in outcome.cases if _is_bad(case)]
            failed.setdefault(outcome.job.environment, []).extend(names)
    jobs = [Job(f"again-{name}", name, (*cases,)) for name, cases in failed.items() if cases]
    if not jobs or sum(len(job.files) for job in jobs) > MOST:
        return
    passed = {
        (again.job.environment, case.name)
        for again in finish(jobs)
        for case in again.cases
        if case.outcome == PASSED
    }
    for outcome in outcomes:
        outcome.cases = [
            replace(case, outcome=RERUN)
            if _is_bad(case) and (outcome.job.environment, case.name) in passed
            else case
            for case in outcome.cases
        ]


def _is_bad(case: Case) -> bool:
    return case.outcome in (FAILED, ERROR)
