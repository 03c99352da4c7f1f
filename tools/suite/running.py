"""Runs files of tests in processes of their own, a few at a time, those that take longest first.

Each job is one pytest, which collects its files alone. A job that ends without a result, or that
hangs, is an event: the test that was running has failed, and the rest of the job runs again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tools.suite.environments import VENVS, Installation, python, variables
from tools.suite.parts import PANEL, ROOT
from tools.suite.results import ERROR, FAILED, Case, line, of_node, of_pytest

LINES, RECORDER = "JAXSIGHT_LINES", "tools.faults.pytest_lines"  # of `tools.faults record`
REPORTS = ROOT / "reports" / "tests"

CHUNK = 150.0
"""Seconds that a job is to take: starting pytest with JAX costs 5 of them, and the last job of a
run leaves other workers without one for as long.
"""
_PATIENCE = 900.0
"""Seconds that any job has; and, as machines differ, five times what it took before. A test that
waits for ever ends itself, with all stacks, after 300 (`faulthandler_timeout` of pyproject.toml).
"""
_FACTOR = 5
_STARTS = 4
"""How often a job that ends its process is started: more tests that do so are one fault."""
_NO_TESTS = 5
"""Pytest's exit status where it selected none."""


@dataclass(frozen=True)
class Job:
    """Files of tests that one process runs."""

    name: str
    environment: str
    files: tuple[str, ...]
    """Their paths, or names of single tests."""
    options: tuple[str, ...] = ()
    seconds: float = 0.0
    """What it is expected to take."""
    is_alone: bool = False
    """Whether it measures processes, which one other job at a time does not disturb."""


@dataclass
class Outcome:
    """What became of a job."""

    job: Job
    cases: list[Case] = field(default_factory=list[Case])
    seconds: float = 0.0
    fault: str = ""
    """Why it has no result, if it has none."""

    @property
    def is_bad(self) -> bool:
        """Whether something failed."""
        return bool(self.fault) or any(case.outcome in (FAILED, ERROR) for case in self.cases)


def chunks(
    name: str,
    environment: str,
    files: Iterable[str],
    options: Sequence[str],
    expected: Callable[[str], float],
) -> Iterator[Job]:
    """Yield jobs of about `CHUNK` seconds each, with files of one folder together."""
    alone = [file for file in files if _has_alone(file)]
    if alone:
        yield Job(
            f"{name}-alone",
            environment,
            tuple(alone),
            (*options, "-m", "alone"),
            sum(map(expected, alone)) / 2,
            is_alone=True,
        )
    shared = (*options, "-m", "not alone")
    waiting: list[str] = []
    seconds, number = 0.0, 0
    for file in files:
        more = expected(file)
        if waiting and seconds + more > CHUNK:
            number += 1
            yield Job(f"{name}-{number}", environment, tuple(waiting), shared, seconds)
            waiting, seconds = [], 0.0
        waiting.append(file)
        seconds += more
    if waiting:
        last = f"{name}-{number + 1}" if number else name
        yield Job(last, environment, tuple(waiting), shared, seconds)


def _has_alone(file: str) -> bool:
    return "mark.alone" in (ROOT / file.partition("::")[0]).read_text(encoding="utf-8")


class Run:
    """Runs jobs, those that take longest first."""

    def __init__(
        self,
        jobs: Iterable[Job],
        installation: Installation,
        extra: Mapping[str, str],
        reports: Path,
        workers: int,
    ) -> None:
        self._jobs = [*jobs]
        self._waiting = sorted(self._jobs, key=lambda job: -job.seconds)
        self._installation = installation
        self._extra = extra
        self._reports = reports
        self._lock = threading.Condition()
        self._starting = threading.Lock()
        self._alone = False
        self._count = len(self._waiting)
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._stopped = False
        self.outcomes: list[Outcome] = []
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(workers)]

    def finish(self) -> list[Outcome]:
        """Run all jobs and return what became of them; Ctrl-C ends their processes."""
        for thread in self._threads:
            thread.start()
        try:
            for thread in self._threads:
                while thread.is_alive():
                    thread.join(1.0)
        except KeyboardInterrupt:
            with self._starting:
                self._stopped = True
                for process in [*self._processes.values()]:
                    _end(process)
            raise
        ran = {id(outcome.job) for outcome in self.outcomes}
        lost = [Outcome(job, fault="it was not run") for job in self._jobs if id(job) not in ran]
        return [*self.outcomes, *lost]

    def _work(self) -> None:
        while (job := self._next()) is not None:
            started = time.monotonic()
            try:
                outcome = self._done(job)
            except Exception as error:  # noqa: BLE001 - a job without an outcome would have passed
                traceback.print_exc()
                outcome = Outcome(job, fault=f"it could not be run: {error!r}")
            outcome.seconds = time.monotonic() - started
            with self._lock:
                self.outcomes.append(outcome)
                self._alone = self._alone and not job.is_alone
                self._lock.notify_all()
                said = line(outcome.cases, outcome.seconds)
                print(f"[{len(self.outcomes)}/{self._count}] {job.name}: {said}", flush=True)
                if outcome.is_bad:
                    print(
                        self._printed(job)
                        + (f"{job.name}: {outcome.fault}" if outcome.fault else "")
                    )

    def _next(self) -> Job | None:
        """Return the longest job whose environment is there; wait until there is one."""
        with self._lock:
            while self._waiting and not self._stopped:
                for job in self._waiting:
                    if self._installation.is_ready(job.environment) and not (
                        job.is_alone and self._alone
                    ):
                        self._waiting.remove(job)
                        self._alone = self._alone or job.is_alone
                        return job
                self._lock.wait(0.5)
        return None

    def _printed(self, job: Job) -> str:
        """Return what a job printed: failures come last."""
        log = self._reports / f"{job.name}.log"
        return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""

    def _done(self, job: Job) -> Outcome:
        if self._installation.has_failed(job.environment):
            return Outcome(job, fault=f"environment `{job.environment}` could not be installed")
        return self._node(job) if job.environment == PANEL else self._pytest(job)

    def _pytest(self, job: Job) -> Outcome:
        log = self._reports / f"{job.name}.jsonl"
        finished, output = log.with_suffix(".finished"), log.with_suffix(".log")
        now, left = log.with_suffix(".now"), log.with_suffix(".left")
        command = [
            str(python(job.environment)),
            *("-m", "pytest", "-q", "-p", "tools.suite.plugin", f"--log={log}"),
            *(("-p", RECORDER) if LINES in os.environ else ()),
            *("-rs", "--durations=5", "--durations-min=5", f"--environment={job.environment}"),
            *job.options,
            *job.files,
        ]
        outcome = Outcome(job)
        for _ in range(_STARTS):
            now.unlink(missing_ok=True)
            left.unlink(missing_ok=True)
            status = self._run(job, command, output)
            outcome.cases = of_pytest(log)
            if self._stopped:
                outcome.fault = "the run was stopped"
                return outcome
            if status in (0, 1, _NO_TESTS) and left.is_file() and not self._died(log):
                if not_run := left.read_text(encoding="utf-8"):
                    outcome.fault = f"tests were not run: {not_run}"
                return outcome
            # The process ended in the middle: the test that ran has failed, and the others go on.
            running = self._died(log)
            if not running:
                outcome.fault = f"pytest ended with {_said(status)}"
                return outcome
            print(f"{job.name}: {running} ended its process ({_said(status)})", flush=True)
            done = [*outcome.cases, Case(running, FAILED, 0.0)]
            with log.open("a", encoding="utf-8") as more:
                # What was being written when the process ended has no end of its line.
                more.write(
                    f'\n{{"name": {_json(running)}, "outcome": "{FAILED}", "seconds": 0.0}}\n'
                )
            finished.write_text("\n".join(case.name for case in done), encoding="utf-8")
            command = [*command, f"--without={finished}"]
            outcome.cases = of_pytest(log)
        outcome.fault = f"{_STARTS} tests ended their process"
        return outcome

    def _died(self, log: Path) -> str:
        """Return the test that was running when its process ended, if one was."""
        now = log.with_suffix(".now")
        return now.read_text(encoding="utf-8") if now.is_file() else ""

    def _run(self, job: Job, command: Sequence[str], output: Path) -> int:
        environment = {**os.environ, **variables(job.environment), **self._extra}
        limit = _PATIENCE + _FACTOR * job.seconds
        environment.pop("PYTEST_ADDOPTS", None)  # what is left out would count as passed
        # Set in many containers: each process of each test would compile all modules again.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        with output.open("ab") as printed, self._starting:
            if self._stopped:
                return -signal.SIGINT
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._processes[process.pid] = process
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
            print(f"{job.name}: ended after {limit:.0f} s", flush=True)
        finally:
            _end(process)
            del self._processes[process.pid]
        return status

    def _node(self, job: Job) -> Outcome:
        report = self._reports / "panel.xml"
        script = (
            "node esbuild.mjs --tests && node --test --test-reporter=dot"
            " --test-reporter-destination=stdout --test-reporter=junit"
            f" --test-reporter-destination='{report}' build/*.test.mjs"
        )
        path = f'export PATH="{VENVS / "node" / "bin"}:$PATH"; cd vscode-extension/panel && '
        status = self._run(job, ["bash", "-c", path + script], self._reports / f"{job.name}.log")
        cases = of_node(report)
        says_why = any(case.outcome in (FAILED, ERROR) for case in cases)
        is_told = cases and (status == 0 or says_why)
        return Outcome(job, cases, fault="" if is_told else f"node ended with {_said(status)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _said(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"status {status}"


def _json(text: str) -> str:
    return json.dumps(text)
