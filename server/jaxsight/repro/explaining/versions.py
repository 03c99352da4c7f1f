"""Which versions of JAX a repro fails with: other environments, and a bisection over releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jaxsight.repro.explaining.environments import Environments, Unavailable
from jaxsight.repro.explaining.system import installed
from jaxsight.repro.explaining.trials import Condition, Trials
from jaxsight.repro.explanation import INTERPRETERS, VERSIONS, Table, TrialRow, Verdict
from jaxsight.workers.compilation.environments import numbers
from jaxsight.workers.own_python import program

_OTHER_PYTHONS = ("python3.12", "python3.13", "python3.14", "python3.11")

Try = Callable[[str], Verdict]
"""Returns the verdict of a version."""


@dataclass(frozen=True, slots=True)
class VersionBoundary:
    """Where a failure begins or ends: two versions with nothing conclusive between them."""

    failing: str
    passing: str
    between: tuple[str, ...] = ()
    """Versions between the two that could not be tried, or that fail in another way."""


def interpreters_table(trials: Trials, pythons: Sequence[str]) -> Table:
    """Return the table of other Python environments."""
    rows: list[TrialRow] = []
    for python in pythons:
        about = installed(python)
        if about is not None and about.jaxlib:
            subject = f"jax {about.jax}, jaxlib {about.jaxlib}, Python {about.python}"
            rows.append(trials.row(Condition(python=python), subject))
        else:
            why = "jaxlib is not installed" if about else "the interpreter does not run"
            rows.append(TrialRow(python, Verdict.UNTRIED, why))
    notes = () if rows else ("no other Python environment is known",)
    passing = [row.subject for row in rows if row.verdict == Verdict.PASSES]
    conclusion = f"it passes with {'; '.join(passing)}" if passing else ""
    return Table(INTERPRETERS, tuple(rows), conclusion, notes)


def table(
    trials: Trials,
    folder: Path | None,
    pythons: Sequence[str],
    *,
    offline: bool,
    oldest: str,
    most: int,
) -> Table:
    """Return the table of released versions of jaxlib, bisected from the installed one.

    Args:
        pythons: interpreters for versions that do not support the user's Python.
        most: how many versions may be tried.
    """
    about = installed(trials.python)
    if about is None or not about.jaxlib:
        return Table(VERSIONS, notes=("not tried: jaxlib has no version",))
    if folder is None:
        return Table(VERSIONS, notes=("not tried: there is no folder for environments",))
    trials.report("listing the versions of jaxlib")
    pools, notes = _pools(folder, trials.python, pythons, offline)
    sources = {version: pool for pool, versions in reversed(pools) for version in versions}
    versions = sorted(sources, key=numbers)
    rows: dict[str, TrialRow] = {about.jaxlib: trials.row(Condition(), f"jax {about.jax}")}

    def attempt(version: str) -> Verdict:
        if version not in rows:
            if len(rows) > most:
                return Verdict.UNTRIED
            rows[version] = _row_of_version(trials, sources[version], version)
        return rows[version].verdict

    here = numbers(about.jaxlib)
    least = numbers(oldest)
    before = [version for version in reversed(versions) if least <= numbers(version) < here]
    after = [version for version in versions if numbers(version) > here]
    began, ended = boundary(about.jaxlib, before, attempt), boundary(about.jaxlib, after, attempt)
    if offline:
        notes.append("offline: only versions that are already installed were tried")
    if len(rows) > most:
        notes.append(f"stopped after {most} versions")
    if not after and not notes:
        notes.append("no newer version of jaxlib is available for these interpreters")
    if between := [version for part in (began, ended) if part for version in part.between]:
        notes.append(f"inconclusive: {', '.join(between)}")
    clauses = []
    if began is not None:
        clauses.append(f"it passes with {began.passing} and fails since {began.failing}")
    if ended is not None:
        clauses.append(f"it passes since {ended.passing}")
    rows_in_order = tuple(rows[version] for version in sorted(rows, key=numbers))
    return Table(VERSIONS, rows_in_order, ", ".join(clauses), tuple(notes))


def boundary(failing: str, others: Sequence[str], attempt: Try) -> VersionBoundary | None:
    """Return where a failure ends among versions, the nearest to the `failing` one first.

    Distances double until a version passes; then the range is bisected. Versions that fail in
    another way decide nothing. None if no version that was tried passes.
    """
    low, high = -1, len(others)
    inconclusive: set[int] = set()
    step = 1
    while high == len(others):
        position = min(low + step, high - 1)
        if position in inconclusive or position <= low:
            return None  # all the way to the last one
        low, high = _narrowed(low, high, position, attempt(others[position]), inconclusive)
        step *= 2
    while untried := [at for at in range(low + 1, high) if at not in inconclusive]:
        middle = untried[len(untried) // 2]
        low, high = _narrowed(low, high, middle, attempt(others[middle]), inconclusive)
    last = failing if low < 0 else others[low]
    return VersionBoundary(last, others[high], tuple(others[low + 1 : high]))


def _narrowed(
    low: int, high: int, position: int, verdict: Verdict, inconclusive: set[int]
) -> tuple[int, int]:
    """Return the last position that fails and the first that passes, after a trial between."""
    if verdict == Verdict.PASSES:
        return low, position
    if verdict == Verdict.FAILS:
        return position, high
    inconclusive.add(position)
    return low, high


def _pools(
    folder: Path, python: str, pythons: Sequence[str], offline: bool
) -> tuple[list[tuple[Environments, list[str]]], list[str]]:
    """Return environments with the versions that each can have, and why there are no others.

    Versions that do not support the user's Python are installed with another one.
    """
    pools: list[tuple[Environments, list[str]]] = []
    notes: list[str] = []
    others = [path for name in _OTHER_PYTHONS if (path := program(name)) is not None]
    seen: set[str] = set()
    for maker in dict.fromkeys((python, *pythons, *others)):
        try:
            environments = Environments.of(folder, maker, offline)
            if environments.platform in seen:
                continue
            seen.add(environments.platform)
            pools.append((environments, environments.available()))
        except Unavailable as error:
            if maker == python:
                notes.append(f"not tried: {error}")
    return pools, notes


def _row_of_version(trials: Trials, environments: Environments, version: str) -> TrialRow:
    trials.report(f"installing jax {version}")
    subject = f"jax {version}"
    try:
        python = environments.interpreter(version)
    except Unavailable as error:
        return TrialRow(subject, Verdict.UNTRIED, str(error))
    command = f"uv run --no-project --with jax=={version} --with jaxlib=={version} {trials.file}"
    return replace(trials.row(Condition(python=python), subject), command=command)
