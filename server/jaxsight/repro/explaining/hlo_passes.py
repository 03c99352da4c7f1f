"""Which pass of XLA a failure needs, by disabling passes.

XLA logs each pass when it starts and when it ends, so the passes of a program are known even if one
of them crashes. Groups of passes are disabled and divided, as in group testing: a group that fails
as before has no pass whose absence avoids the failure.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from jaxsight.repro.explaining.trials import Condition, Trials
from jaxsight.repro.explanation import (
    FAILS,
    HLO_PASSES,
    PASSES,
    UNTRIED,
    Row,
    Table,
)

_LOGGED = (("TF_CPP_VMODULE", "hlo_pass_pipeline=1"), ("TF_CPP_MIN_LOG_LEVEL", "0"))
_STARTED = re.compile(r"\]\s+HLO pass ([^\s:]+)$")
_ENDED = re.compile(r"\] HLO pass: (\S+) time: ")
_CHANGED = re.compile(r"\.after_(.+)\.before_[^/]+\.txt$")

MOST_TRIALS = 60

Try = Callable[[tuple[str, ...]], str]
"""Returns the verdict with these passes disabled."""


def table(trials: Trials) -> Table:
    """Return the table of passes that were disabled, one row for each group."""
    trials.report("listing the passes of XLA")
    try:
        passes, unfinished = _passes(trials)
        changed = _changed(trials)
    except OSError as error:
        return Table(HLO_PASSES, notes=(f"cannot list the passes: {error}",))
    if not passes:
        return Table(HLO_PASSES, notes=("it fails before XLA runs a pass",))
    rows: dict[tuple[str, ...], Row] = {}

    def try_without(group: tuple[str, ...]) -> str:
        if group not in rows:
            if len(rows) >= MOST_TRIALS:
                return UNTRIED
            rows[group] = trials.row(_without(group), _subject(group))
        return rows[group].verdict

    groups = _groups(passes, unfinished, changed)
    healing = next((found for group in groups if (found := search(group, try_without))), ())
    tried = sorted(rows.items(), key=lambda item: len(item[0]))
    notes = [f"the process ended in the pass {name}" for name in unfinished]
    if len(rows) >= MOST_TRIALS:
        notes.append(f"stopped after {MOST_TRIALS} trials")
    return Table(
        HLO_PASSES,
        tuple(row for group, row in tried if len(group) == 1 or _tells(row, healing)),
        _conclusion(healing, unfinished),
        tuple(notes),
    )


def search(group: Sequence[str], try_without: Try) -> tuple[str, ...]:
    """Return the passes of a group of which disabling each one alone avoids the failure."""
    group = tuple(group)
    verdict = try_without(group) if group else FAILS
    if verdict in (FAILS, UNTRIED):
        return ()
    if len(group) == 1:
        return group if verdict == PASSES else ()
    half = len(group) // 2
    return search(group[:half], try_without) + search(group[half:], try_without)


def _groups(
    passes: Sequence[str], unfinished: Sequence[str], changed: frozenset[str]
) -> list[tuple[str, ...]]:
    """Return the passes, the likely ones in the first groups."""
    first = tuple(name for name in passes if name in unfinished)
    second = tuple(name for name in passes if name in changed and name not in first)
    rest = tuple(name for name in passes if name not in first and name not in second)
    return [group for group in (first, second, rest) if group]


def _tells(row: Row, healing: Sequence[str]) -> bool:
    """Return whether a row about several passes says more than those about single ones."""
    return row.verdict == PASSES and not healing


def _without(group: Sequence[str]) -> Condition:
    return Condition.flags(f"--xla_disable_hlo_passes={','.join(group)}")


def _subject(group: Sequence[str]) -> str:
    return f"without {group[0]}" if len(group) == 1 else f"without {len(group)} passes"


def _conclusion(healing: Sequence[str], unfinished: Sequence[str]) -> str:
    if healing:
        names = " or ".join(f"`{name}`" for name in healing)
        return f"disabling the pass {names} avoids the failure"
    if unfinished:
        return f"the pass `{unfinished[-1]}` does not finish"
    return "disabling a single pass does not avoid the failure"


def _passes(trials: Trials) -> tuple[list[str], list[str]]:
    """Return the passes that ran, in order, and those that did not end."""
    log = trials.ran(Condition(_LOGGED)).stderr
    return logged(log)


def logged(log: str) -> tuple[list[str], list[str]]:
    """Return the passes in a log of XLA, in order, and those that did not end."""
    passes: dict[str, int] = {}
    for line in log.splitlines():
        if started := _STARTED.search(line):
            passes[started[1]] = passes.get(started[1], 0) + 1
        elif ended := _ENDED.search(line):
            passes[ended[1]] = passes.get(ended[1], 0) - 1
    return list(passes), [name for name, running in passes.items() if running > 0]


def _changed(trials: Trials) -> frozenset[str]:
    """Return the passes that changed a module, from the files that XLA dumps after each."""
    with tempfile.TemporaryDirectory(prefix="jaxsight-dump-") as folder:
        trials.ran(Condition.flags(f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.*"))
        names = [path.name for path in Path(folder).iterdir()]
    changed = {match[1] for name in names if (match := _CHANGED.search(name))}
    return frozenset(changed - {"pipeline-start"})
