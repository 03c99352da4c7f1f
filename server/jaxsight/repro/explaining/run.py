"""Explain a repro: run it under other conditions, one table for each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxsight.repro import running
from jaxsight.repro.explaining import conditions, hlo_passes, intermediates, targets, versions
from jaxsight.repro.explaining.trials import Condition, Report, Trials, abort_place, environment
from jaxsight.repro.explanation import (
    FLAGS,
    HLO_PASSES,
    INTERMEDIATES,
    INTERPRETERS,
    JIT,
    TARGETS,
    TITLES,
    VERSIONS,
    Explanation,
    Table,
)
from jaxsight.repro.failures import FINISHED, RunFailure

_REPEATS = 5
"""Runs of a trial of a flaky failure before it counts as passing, as in `hlo_bisect` of XLA."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What is tried.

    Attributes:
        tables: the names of the tables to make.
        expected: the failure to explain; by default, the file's own.
        timeout: seconds after which a trial is killed.
        memory: bytes that a trial may use.
        pythons: interpreters of other environments, to run the file with.
        hosts: names of machines for ssh, on which to run the file.
        environments: the folder of managed environments; without one, no versions are installed.
        offline: whether nothing may be downloaded.
        oldest: the oldest version of jaxlib to try.
        most_environments: how many versions may be tried, each of which is an installation.
    """

    tables: tuple[str, ...] = tuple(TITLES)
    expected: RunFailure | None = None
    timeout: float = running.DEFAULT_TIMEOUT
    memory: int = running.DEFAULT_MEMORY
    pythons: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    environments: Path | None = None
    offline: bool = False
    oldest: str = "0.5.0"
    most_environments: int = 12


def explain(file: Path, python: str, choices: Choices, report: Report) -> Explanation:
    """Run a repro under other conditions, and tabulate which of them avoid its failure.

    Args:
        file: the repro; the files beside it are left alone.
        python: the interpreter with the JAX that it fails with.
        report: receives what is being tried.

    Raises:
        OSError: the interpreter cannot be started, or the file cannot be read.
    """
    file = file.absolute()
    text = file.read_text(encoding="utf-8")
    report("running the file as it is")
    first = _run(file, python, choices)
    failure = choices.expected or first.failure
    if FINISHED in (first.failure.kind, failure.kind):
        return Explanation(failure, notes=("the file finishes without a failure here",))
    if not first.failure.same(failure):
        words = f"the file fails in another way here: {first.failure.headline}"
        return Explanation(failure, notes=(words,))
    again = _run(file, python, choices)
    flaky = not again.failure.same(failure)
    trials = Trials(
        file=file,
        python=python,
        failure=failure,
        aborted_in=abort_place(first),
        seconds=max(first.seconds, again.seconds),
        timeout=choices.timeout,
        memory=choices.memory,
        repeats=_REPEATS if flaky else 1,
        report=report,
    )
    makers = _makers(trials, text, choices)
    tables = [makers[name]() for name in TITLES if name in choices.tables and name in makers]
    notes = []
    if flaky:
        notes.append(f"the failure does not always occur: trials were run up to {_REPEATS} times")
    if conditions.SETS_FLAGS.search(text):
        notes.append("the file discards the XLA_FLAGS of the environment")
    return Explanation(failure, tuple(tables), tuple(notes))


def _run(file: Path, python: str, choices: Choices) -> running.FinishedRun:
    return running.run_file(
        python,
        file,
        timeout=choices.timeout,
        memory=choices.memory,
        environment=environment(Condition()),
    )


def _makers(trials: Trials, text: str, choices: Choices) -> dict[str, Callable[[], Table]]:
    makers = {
        JIT: lambda: conditions.table_of_options(trials, text),
        FLAGS: lambda: conditions.table_of_flags(trials),
        HLO_PASSES: lambda: hlo_passes.table(trials),
        INTERPRETERS: lambda: versions.interpreters_table(trials, choices.pythons),
        VERSIONS: lambda: versions.table(
            trials,
            choices.environments,
            choices.pythons,
            offline=choices.offline,
            oldest=choices.oldest,
            most=choices.most_environments,
        ),
        TARGETS: lambda: targets.table(trials, choices.hosts),
    }
    if intermediates.concerns_values(trials.failure):
        makers[INTERMEDIATES] = lambda: intermediates.table(trials)
    return makers
