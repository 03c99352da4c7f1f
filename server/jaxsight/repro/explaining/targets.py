"""Whether a repro fails on other machines, over the user's own ssh."""

from __future__ import annotations

import base64
import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from jaxsight.files import reading
from jaxsight.repro import running
from jaxsight.repro.explaining.trials import Trials, verdict_of
from jaxsight.repro.explanation import TARGETS, Table, TrialRow, Verdict
from jaxsight.repro.failures import EXCEPTION, HANG, RunFailure, failure_of_exit
from jaxsight.workers.compilation.remote import CANNOT_CONNECT, OPTIONS
from jaxsight.workers.own_python import program

_THERE = """
import sys
sys.path = [*filter(None, sys.path)]  # not the folder of the login
import base64, json, os, subprocess, tempfile
sent = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as folder:
    for name, data in sent["files"].items():
        with open(os.path.join(folder, name), "wb") as out:
            out.write(base64.b64decode(data))
    report = os.path.join(folder, "failure.json")
    script = os.path.join(folder, sent["main"])
    command = [sys.executable, "-c", sent["observer"], report, script]
    try:
        done = subprocess.run(command, timeout=sent["timeout"], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        code, stderr = done.returncode, done.stderr
    except subprocess.TimeoutExpired:
        code, stderr = None, ""
    failure = None
    if os.path.exists(report):
        with open(report) as file:
            failure = json.load(file)
print(json.dumps({"code": code, "failure": failure, "stderr": stderr[-65536:]}))
"""


def table(trials: Trials, hosts: Sequence[str], python: str = "python3") -> Table:
    """Return the table of machines."""
    rows = tuple(_row(trials, host, python) for host in hosts)
    notes = () if rows else ("not tried: no machine is configured",)
    return Table(TARGETS, rows, notes=notes)


def _row(trials: Trials, host: str, python: str) -> TrialRow:
    trials.report(f"trying {host}")
    name = host.removeprefix("ssh://")
    remote = f"{shlex.quote(python)} -c {shlex.quote(_THERE)}"
    command = [program("ssh") or "ssh", *OPTIONS, "--", name, remote]
    shown = f"ssh {shlex.quote(name)} {python} - < {shlex.quote(str(trials.file))}"
    try:
        done = subprocess.run(
            command,
            input=_message(trials.file, trials.limit),
            capture_output=True,
            text=True,
            timeout=trials.limit + 60,  # for the connection, and to send arrays
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return TrialRow(name, Verdict.UNTRIED, f"cannot reach {name}: {error}", shown)
    try:
        ran = _ran(json.loads(done.stdout), trials.limit)
    except (ValueError, TypeError, KeyError):
        words = done.stderr.strip().splitlines()
        reach = "cannot reach" if done.returncode == CANNOT_CONNECT else "no answer from"
        return TrialRow(
            name, Verdict.UNTRIED, f"{reach} {name} ({words[-1] if words else 'no output'})", shown
        )
    verdict = verdict_of(ran, trials.failure, trials.aborted_in, elsewhere=True)
    return TrialRow(name, verdict, ran.failure.headline if verdict == Verdict.OTHER else "", shown)


def _message(file: Path, timeout: float) -> str:
    """Return what is sent: the file, and the arrays beside it."""
    paths = [file, *filter(reading.is_file, file.parent.glob(f"{file.stem}*.npz"))]
    files: dict[str, str] = {}
    for path in paths:
        with reading.opened(path) as opened:
            files[path.name] = base64.b64encode(opened.read()).decode()
    about = {"main": file.name, "observer": running.OBSERVER, "timeout": timeout}
    return json.dumps({"files": files, **about})


def _ran(reply: dict[str, object], timeout: float) -> running.FinishedRun:
    code, failure = reply["code"], reply["failure"]
    if code is None:
        ended, code = RunFailure(HANG, message=f"within {timeout:g} s"), -9
    elif not isinstance(code, int):
        raise TypeError(code)
    elif isinstance(failure, list) and code >= 0:
        ended = RunFailure(EXCEPTION, *map(str, failure))
    else:
        ended = failure_of_exit(code)
    return running.FinishedRun(ended, "", str(reply["stderr"]), 0.0, code)
