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
from jaxsight.repro.explanation import HLO_PASSES, Table, TrialRow, Verdict

_LOGGED = (("TF_CPP_VMODULE", "hlo_pass_pipeline=1"), ("TF_CPP_MIN_LOG_LEVEL", "0"))
_STARTED = re.compile(r"\]\s+HLO pass ([^\s:]+)$")
_ENDED = re.compile(r"\] HLO pass: (\S+) time: ")
_CHANGED = re.compile(r"\.after_(.+)\.before_[^/]+\.txt$")

MOST_TRIALS = 60
"""Each compiles the program anew; halving 200 passes takes about 16."""

Try = Callable[[tuple[str, ...]], Verdict]
"""Returns the verdict with these passes disabled."""


def table(trials: Trials) -> Table:
    """Return the table of passes that were disabled, one row for each group."""
    trials.report("listing the passes of XLA")
    try:
        passes, unfinished = logged(trials.ran(Condition(_LOGGED)).stderr)
        with tempfile.TemporaryDirectory(prefix="jaxsight-dump-") as folder:
            # XLA dumps files after each pass that changed a module.
            trials.ran(Condition.flags(f"--xla_dump_to={folder} --xla_dump_hlo_pass_re=.*"))
            files = [path.name for path in Path(folder).iterdir()]
        changed = {match[1] for file in files if (match := _CHANGED.search(file))}
        changed.discard("pipeline-start")
    except OSError as error:
        return Table(HLO_PASSES, notes=(f"cannot list the passes: {error}",))
    if not passes:
        return Table(HLO_PASSES, notes=("it fails before XLA runs a pass",))
    rows: dict[tuple[str, ...], TrialRow] = {}

    def try_without(group: tuple[str, ...]) -> Verdict:
        if group not in rows:
            if len(rows) >= MOST_TRIALS:
                return Verdict.UNTRIED
            condition = Condition.flags(f"--xla_disable_hlo_passes={','.join(group)}")
            single = len(group) == 1
            subject = f"without {group[0]}" if single else f"without {len(group)} passes"
            rows[group] = trials.row(condition, subject)
        return rows[group].verdict

    # The likely ones first: those that did not end, then those that changed a module.
    first = tuple(name for name in passes if name in unfinished)
    second = tuple(name for name in passes if name in changed and name not in first)
    rest = tuple(name for name in passes if name not in first and name not in second)
    groups = filter(None, (first, second, rest))
    healing = next((found for group in groups if (found := search(group, try_without))), ())
    # A row about several passes says something only if no single one avoids the failure.
    shown = {
        group: row
        for group, row in rows.items()
        if len(group) == 1 or (row.verdict is Verdict.PASSES and not healing)
    }
    notes = [f"the process ended in the pass {name}" for name in unfinished]
    if len(rows) >= MOST_TRIALS:
        notes.append(f"stopped after {MOST_TRIALS} trials")
    conclusion = "disabling a single pass does not avoid the failure"
    if healing:
        names = " or ".join(f"`{name}`" for name in healing)
        conclusion = f"disabling the pass {names} avoids the failure"
    elif unfinished:
        conclusion = f"the pass `{unfinished[-1]}` does not finish"
    return Table(
        HLO_PASSES,
        tuple(shown[group] for group in sorted(shown, key=len)),
        conclusion,
        tuple(notes),
    )


def search(group: Sequence[str], try_without: Try) -> tuple[str, ...]:
    """Return the passes of a group of which disabling each one alone avoids the failure."""
    group = tuple(group)
    verdict = try_without(group) if group else Verdict.FAILS
    if verdict in (Verdict.FAILS, Verdict.UNTRIED):
        return ()
    if len(group) == 1:
        return group if verdict == Verdict.PASSES else ()
    half = len(group) // 2
    return search(group[:half], try_without) + search(group[half:], try_without)


def logged(log: str) -> tuple[list[str], list[str]]:
    """Return the passes in a log of XLA, in order, and those that did not end."""
    passes: dict[str, int] = {}
    for line in log.splitlines():
        if started := _STARTED.search(line):
            passes[started[1]] = passes.get(started[1], 0) + 1
        elif ended := _ENDED.search(line):
            passes[ended[1]] = passes.get(ended[1], 0) - 1
    return list(passes), [name for name, running in passes.items() if running > 0]
