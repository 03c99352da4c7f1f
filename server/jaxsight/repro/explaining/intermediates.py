"""The first value of a program at which jit and eager differ, or which is NaN."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import jaxsight
from jaxsight.repro import running
from jaxsight.repro.explaining.trials import Condition, Trials, environment
from jaxsight.repro.explanation import INTERMEDIATES, Table, TrialRow, Verdict
from jaxsight.repro.failures import EXCEPTION, FINISHED, RunFailure

_CHILD = """
import sys
sys.path = [*filter(None, sys.path)]  # not yet the folder of the file
import os, runpy
server, file, out = sys.argv[1:]
sys.argv = [file]
sys.path.insert(0, os.path.dirname(file))
namespace = runpy.run_path(file, run_name="repro")
sys.path.insert(0, server)
from jaxsight.repro.explaining.prefixes import main
main(file, namespace, out)
"""
_SERVER = Path(jaxsight.__file__).parents[1]

_CONCLUSIONS = {
    "value": "jit and eager first differ at {}",
    "nan": "jit first gives NaN at {}, where eager does not",
    "nan in both": "the first NaN is at {}",
}


def concerns_values(failure: RunFailure) -> bool:
    """Return whether a failure is about the values of results."""
    words = failure.message.lower()
    return (
        failure.kind == EXCEPTION
        and failure.name == "AssertionError"
        and any(word in words for word in ("differ", "nan", "inf"))
    )


def table(trials: Trials) -> Table:
    """Return the table of the program's equations up to the first that differs."""
    trials.report("comparing intermediate values")
    with tempfile.TemporaryDirectory(prefix="jaxsight-values-") as folder:
        out = Path(folder, "values.json")
        command = [trials.python, "-c", _CHILD, str(_SERVER), str(trials.file), str(out)]
        ran = running.run_command(
            command,
            timeout=max(trials.limit, trials.timeout),
            memory=trials.memory,
            environment=environment(Condition()),
            folder=trials.file.parent,
        )
        if ran.failure.kind != FINISHED:
            words = ran.stderr.strip().splitlines()
            reason = words[-1] if words else ran.failure.headline
            return Table(INTERMEDIATES, notes=(f"not tried: {reason}",))
        answer = json.loads(out.read_text(encoding="utf-8"))
    rows, conclusion = [], ""
    for record in answer["rows"]:
        place = f" at {trials.file.name}:{record['line']}" if record["line"] else ""
        subject = f"equation {record['index'] + 1}: {record['name']} {record['type']}"
        verdict = Verdict.DIVERGES if record["kind"] else Verdict.AGREES
        rows.append(TrialRow(subject, verdict, f"{record['text']}{place}".strip()))
        if verdict is Verdict.DIVERGES and not conclusion:
            conclusion = _CONCLUSIONS[record["kind"]].format(f"`{record['name']}`{place}")
    if not conclusion:
        conclusion = f"jit and eager agree at each of {answer['equations']} equations"
    return Table(INTERMEDIATES, tuple(rows[-8:]), conclusion)
