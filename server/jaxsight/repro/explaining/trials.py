"""Run a repro under a condition, and compare how it fails with the failure to explain."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from jaxsight.repro import running
from jaxsight.repro.explanation import TrialRow, Verdict
from jaxsight.repro.failures import CRASH, FINISHED, HANG, RunFailure

Report = Callable[[str], None]
"""Receives what is being tried, in one line."""

_UNKNOWN_FLAGS = re.compile(r"Unknown flags? in XLA_FLAGS: (.*)")
_CHECK_FAILED = re.compile(r"^F\d{4} \S+ +\d+ ([\w./-]+):\d+\]", re.MULTILINE)
"""The source file of a failed check of XLA, in what an abort prints."""

_LEAST_SECONDS = 30.0
"""The least limit of a trial, a choice: importing JAX takes some of it on a busy machine."""
_SLOWER = 10.0
"""Times as long as the failing run that a trial may take: eager runs, and those without
optimizations, take some times as long; a hang is not waited for."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How a trial differs from running the file as it is.

    Attributes:
        variables: environment variables; `XLA_FLAGS` is appended to the existing flags.
        python: another interpreter's path.
    """

    variables: tuple[tuple[str, str], ...] = ()
    python: str = ""

    @staticmethod
    def flags(text: str) -> Condition:
        """Return the condition of additional XLA flags."""
        return Condition((("XLA_FLAGS", text),))


@dataclass(frozen=True, slots=True)
class Trials:
    """Everything that the trials of one repro share.

    Attributes:
        failure: the failure to explain.
        aborted_in: the source file of XLA whose check failed, if it aborted so.
        repeats: how many times a trial is run before it counts as passing.
        done: the verdicts of conditions that were tried.
    """

    file: Path
    python: str
    failure: RunFailure
    aborted_in: str
    seconds: float
    timeout: float
    memory: int
    repeats: int
    report: Report
    done: dict[Condition, TrialRow] = field(default_factory=dict)

    @property
    def limit(self) -> float:
        """Seconds after which a trial counts as a hang."""
        if self.failure.kind == HANG:
            return self.timeout
        return min(self.timeout, max(_LEAST_SECONDS, _SLOWER * self.seconds))

    def row(self, condition: Condition, subject: str) -> TrialRow:
        """Try a condition, unless it has been tried before."""
        if condition not in self.done:
            self.report(f"trying {subject}")
            self.done[condition] = self._tried(condition)
        return replace(self.done[condition], subject=subject)

    def ran(self, condition: Condition) -> running.FinishedRun:
        """Run the file once under a condition.

        Raises:
            OSError: the interpreter cannot be started.
        """
        return running.run_file(
            condition.python or self.python,
            self.file,
            timeout=self.limit,
            memory=self.memory,
            environment=environment(condition),
        )

    def _tried(self, condition: Condition) -> TrialRow:
        command = command_of(condition, self.python, self.file)
        seconds = 0.0
        for _ in range(self.repeats):
            try:
                ran = self.ran(condition)
            except OSError as error:
                why = f"cannot start the interpreter: {error}"
                return TrialRow("", Verdict.UNTRIED, why, command)
            seconds += ran.seconds
            if unknown := _UNKNOWN_FLAGS.search(ran.stderr):
                why = f"unknown flag {unknown[1].strip()}"
                return TrialRow("", Verdict.UNTRIED, why, command, seconds)
            verdict = verdict_of(ran, self.failure, self.aborted_in, bool(condition.python))
            if verdict != Verdict.PASSES:
                break
        detail = ran.failure.headline if verdict == Verdict.OTHER else ""
        return TrialRow("", verdict, detail, command, round(seconds, 3))


def verdict_of(
    ran: running.FinishedRun, failure: RunFailure, aborted_in: str = "", elsewhere: bool = False
) -> Verdict:
    """Return whether a run has a failure, finishes, or fails in another way.

    Args:
        aborted_in: the `abort_place` of the failure.
        elsewhere: whether JAX may be another version, whose functions have other names.
    """
    if ran.failure.kind == FINISHED:
        return Verdict.PASSES
    compared = slice(3) if elsewhere else slice(None)
    if ran.failure.signature[compared] != failure.signature[compared]:
        return Verdict.OTHER
    return Verdict.FAILS if aborted_in == abort_place(ran) else Verdict.OTHER


def abort_place(ran: running.FinishedRun) -> str:
    """Return the source file of XLA whose failed check aborted a run, or an empty string."""
    place = _CHECK_FAILED.search(ran.stderr)
    return place[1] if place and ran.failure.kind == CRASH else ""


def environment(condition: Condition) -> dict[str, str]:
    """Return the environment variables of a trial.

    Flags are appended, since the last of several values applies. Nothing is read from or written
    to a compilation cache.
    """
    variables = dict(os.environ)
    if condition.python:
        variables.pop("PYTHONPATH", None)  # it has packages for the other interpreter
    variables["JAX_ENABLE_COMPILATION_CACHE"] = "0"
    for name, value in condition.variables:
        before = variables.get(name, "").strip() if name == "XLA_FLAGS" else ""
        variables[name] = f"{before} {value}".strip()
    return variables


def command_of(condition: Condition, python: str, file: Path) -> str:
    """Return a trial as a command for a shell."""
    variables = [f"{name}={shlex.quote(value)}" for name, value in condition.variables]
    return " ".join([*variables, shlex.quote(condition.python or python), shlex.quote(str(file))])
