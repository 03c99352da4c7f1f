"""`python -m tools.suite`: the gate, all parts, what they need, and how long they took."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tools.suite import digests, durations
from tools.suite.environments import Installation, cache_folder, missing, needs, newest
from tools.suite.parts import (
    NEWEST,
    NOTEBOOKS,
    PANEL,
    PARTS,
    SMOKE,
    TABLES,
    VSCODE,
    Part,
    files,
    named,
    tested,
)
from tools.suite.reruns import rerun
from tools.suite.results import (
    ERROR,
    FAILED,
    MOST,
    PASSED,
    RERUN,
    Case,
    by_folder,
    line,
    of_pytest,
)
from tools.suite.running import REPORTS, Job, Outcome, Run, chunks

CACHE = "JAXSIGHT_TEST_CACHE"
SEARCH = "JAXSIGHT_SEARCH"


def main() -> int:
    # Whatever ends the run ends its tests, which are in sessions of their own.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` does
            signal.signal(number, signal.default_int_handler)
    parser = argparse.ArgumentParser(prog="python -m tools.suite", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("gate", help="what a change can break")
    commands.add_parser("touched", help="only the packages that differ and those that import them")
    everything = commands.add_parser("all", help="everything, or some parts of it")
    everything.add_argument("part", nargs="*", help="names of parts, by default all")
    listed = commands.add_parser("parts", help="list the parts")
    listed.add_argument("--json", action="store_true", help="as JSON, for a workflow")
    commands.add_parser("targets", help="print the environments of the gate as targets of make")
    commands.add_parser("durations", help="write tests/durations.json from the last runs of parts")
    options = parser.parse_args()
    match options.command:
        case "gate":
            return _gate()
        case "touched":
            return _touched()
        case "all":
            if options.part == ["help"]:
                _list(as_json=False)
                return 0
            try:
                return _all(named(options.part) if options.part else [*PARTS])
            except ValueError as error:
                parser.error(str(error))
        case "parts":
            _list(options.json)
        case "targets":
            print(*_targets())
        case "durations":
            _durations()
    return 0


def _gate() -> int:
    """Run the gate: what a change can break."""
    started = time.monotonic()
    touched = digests.touched(tested()).own
    print(f"touched: {', '.join(sorted(touched)) or 'nothing'}", flush=True)
    jobs = [*_newest(("--gate", ",".join(sorted(touched))), touched)]
    whole = [
        part
        for part in PARTS
        # Files that only their own environment collects, and the panel's, which take seconds.
        if part.environment in (NOTEBOOKS, TABLES, VSCODE, PANEL)
        and (part.environment == PANEL or {path.split("/")[0] for path in part.paths} & touched)
    ]
    for part in whole:
        jobs += [] if _is_missing(part.name, part.environment) else jobs_of(part)
    held = {file for part in whole for file in files(part)}
    for environment, paths in SMOKE.items():
        if not held >= {f"tests/{path}" for path in paths} and not _is_missing(
            "smoke run", environment
        ):
            jobs.append(_smoke(environment, paths))
    outcomes = _run("gate", jobs, {SEARCH: "sentinels"})
    for outcome in outcomes:
        if outcome.job.name.startswith("smoke-") and not _ran(outcome.cases):
            outcome.fault = outcome.fault or "a smoke run without tests"
    return _conclude(outcomes, started)


def _ran(cases: Iterable[Case]) -> bool:
    return any(case.outcome == PASSED for case in cases)


def _is_missing(what: str, environment: str) -> bool:
    if why := missing(environment):
        print(f"{what} in `{environment}` is left out: {why}")
    return bool(why)


def _touched() -> int:
    """Run what is touched, and the quick tests of what imports it, on the newest JAX alone."""
    started = time.monotonic()
    touched = digests.touched(tested())
    print(f"touched: {', '.join(sorted(touched.own)) or 'nothing'}", flush=True)
    near = ("--near", ",".join(sorted(touched.own)), ",".join(sorted(touched.imports)))
    folders = touched.own | touched.imports
    jobs = [*_newest(near, touched.own, folders)]
    if not jobs:
        return 0
    return _conclude(_run("touched", jobs, {SEARCH: "sentinels"}), started)


def _newest(
    options: Iterable[str], touched: Iterable[str], folders: Iterable[str] | None = None
) -> Iterator[Job]:
    """Yield the jobs on the newest JAX; folders that are touched are run whole."""
    whole, environment = {*touched}, newest()
    for part in PARTS:
        if part.environment != NEWEST:
            continue
        held = files(part)
        if folders is not None:
            held = [file for file in held if file.split("/")[1] in {*folders}]

        def expected(file: str) -> float:
            times = durations.of(environment, file)
            return times.seconds if file.split("/")[1] in whole else times.quick

        yield from chunks(part.name, environment, held, [*options], expected)


def _smoke(environment: str, paths: tuple[str, ...]) -> Job:
    options = ("-m", "smoke") if environment == VSCODE else ("-m", "not slow and not alone")
    return Job(f"smoke-{environment}", environment, tuple(f"tests/{p}" for p in paths), options, 60)


def _all(parts: list[Part]) -> int:
    """Run parts, one after the other; one that passes writes down what it passed with."""
    started = time.monotonic()
    outcomes: list[Outcome] = []
    left_out: list[str] = []
    unmarked: list[str] = []
    for part in parts:
        if part.environment != NEWEST and _is_missing(part.name, part.environment):
            left_out.append(f"not run: {part.name}")
            continue
        before = digests.Tree()
        rows = {name: before.row(name) for name in sorted(before.packages)}
        begun = time.monotonic()
        print(f"--- {part.name}: {part.what}", flush=True)
        mine = _run(part.name, [*jobs_of(part)], {SEARCH: "all"})
        cases = [case for outcome in mine for case in outcome.cases]
        print(f"{part.name}: {line(cases, time.monotonic() - begun)}", flush=True)
        # Rows say what the newest JAX passed, which not every machine has.
        is_newest = part.environment != NEWEST or newest() == NEWEST
        slow = _unmarked(part, cases)
        if any(outcome.is_bad for outcome in mine) or slow or not _ran(cases):
            print(f"{part.name}: not written down as passed")
        elif is_newest and part.paths:
            _write(part, rows)
        outcomes += mine
        unmarked += slow
    if len(parts) == len(PARTS):  # of all, what this machine can have
        for each in left_out:
            print(each)
        left_out = []
    return _conclude(outcomes, started, [*left_out, *unmarked])


def _write(part: Part, rows: dict[str, digests.Row]) -> None:
    """Write down what the packages of a part passed with, if they are still the same."""
    after = digests.Tree()
    packages = {path.partition("/")[0] for path in part.paths}
    same = {name for name in packages if name in rows and rows[name] == after.row(name)}
    if changed := packages - same:
        print(f"{part.name}: changed while it ran: {', '.join(sorted(changed))}")
    digests.write(part.name, {name: rows[name] for name in same})


def jobs_of(part: Part) -> Iterator[Job]:
    """Yield the jobs of a part of all tests."""
    if part.environment == PANEL:
        yield Job(part.name, PANEL, (), seconds=20)
        return
    environment = newest() if part.environment == NEWEST else part.environment
    options = ("-m", "not slow and not alone") if part.is_quick else ()
    # Starting VS Code takes longer than most of its tests: they share one.
    if environment == VSCODE:
        held = tuple(files(part))
        seconds = sum(durations.of(environment, file).seconds for file in held)
        yield Job(part.name, environment, held, options, seconds)
        return

    def expected(file: str) -> float:
        times = durations.of(environment, file)
        return times.quick if part.is_quick else times.seconds

    for job in chunks(part.name, environment, files(part), (), expected):
        if not (part.is_quick and job.is_alone):
            # Of two `-m`, pytest reads the last.
            yield replace(job, options=(*job.options, *options))


def _run(name: str, jobs: list[Job], extra: dict[str, str]) -> list[Outcome]:
    reports = REPORTS / name
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    wanted = sorted({job.environment for job in jobs}, key=lambda name: (name != newest(), name))
    installation = Installation(wanted, reports / "install.log")
    installation.start()
    variables = {CACHE: os.environ.get(CACHE) or str(cache_folder()), **extra}

    def finish(jobs: list[Job], workers: int) -> list[Outcome]:
        return Run(jobs, installation, variables, reports, workers).finish()

    outcomes = finish(jobs, int(os.environ.get("WORKERS", "2")))
    rerun(outcomes, lambda again: finish(again, 1))
    if any(installation.has_failed(name) for name in wanted):
        print((reports / "install.log").read_text(encoding="utf-8", errors="replace"))
    return outcomes


def _conclude(outcomes: list[Outcome], started: float, complaints: Iterable[str] = ()) -> int:
    """Print the tables and pytest's line; 0 if all ran and none failed."""
    cases = [case for outcome in outcomes for case in outcome.cases]
    suites: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        suites.setdefault(outcome.job.environment, []).append(outcome)
    print("\n".join(by_folder(cases)))
    for name, of_suite in sorted(suites.items()):
        inside = [case for outcome in of_suite for case in outcome.cases]
        print(f"{name}: {line(inside, sum(outcome.seconds for outcome in of_suite))}")
    complaints = [*complaints]
    for complaint in complaints:
        print(complaint)
    for case in cases:
        if case.outcome == RERUN:
            print(f"rerun: {case.name}: failed beside others, and passed by itself")
    bad = [outcome for outcome in outcomes if outcome.is_bad]
    for outcome in bad:
        for case in outcome.cases:
            if case.outcome in (FAILED, ERROR):
                print(f"{case.outcome}: {case.name}")
        if outcome.fault:
            print(f"did not finish: {outcome.job.name}: {outcome.fault}")
    print(f"===== {line(cases, time.monotonic() - started)} =====")
    return 1 if bad or complaints or not cases else 0


def _unmarked(part: Part, cases: Iterable[Case]) -> list[str]:
    """Return the cases that are slow now, were slow before or are new, and are not marked so.

    A busy machine makes others slow, too, so that one run says nothing of those that are known.
    """
    environment = newest() if part.environment == NEWEST else part.environment
    if environment != newest():
        return []  # marks say what is slow on the newest JAX
    known = durations.read().get(environment, {})
    return [
        f"not marked slow: {case.seconds:.0f} s {case.name}"
        for case in sorted(cases, key=lambda case: -case.seconds)
        if case.seconds > durations.SLOW
        and not case.is_slow
        and (
            durations.seconds(environment, case.name) > durations.SLOW
            or (known and case.file not in known)
        )
    ][:MOST]


def _list(as_json: bool) -> None:
    if as_json:
        print(json.dumps([part.name for part in PARTS]))
        return
    for part in PARTS:
        print(f"{part.name:<20}{part.environment:<12}{part.what}")


def _targets() -> Iterator[str]:
    """Yield what the gate needs and `make lint` can be made beside."""
    wanted = [newest(), *SMOKE, PANEL]
    seen = dict.fromkeys(
        target for name in wanted if not missing(name) for target in needs(name).first
    )
    yield from seen


def _durations() -> None:
    for part in PARTS:
        environment = newest() if part.environment == NEWEST else part.environment
        logs = sorted((REPORTS / part.name).glob("*.jsonl"))
        cases = [case for log in logs for case in of_pytest(log)]
        if cases:
            durations.update(environment, cases)


if __name__ == "__main__":
    sys.exit(main())
