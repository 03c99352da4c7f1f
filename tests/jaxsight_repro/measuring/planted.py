"""Planted faults: how many equations are left, beside how few are known to show the fault."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from jaxsight_repro.checks.base import parse
from jaxsight_repro.failures import FINISHED
from jaxsight_repro.running import run_file
from tests.corpora.jaxsight_repro import planted
from tests.jaxsight_repro.measuring.reductions import reduction

MEDIAN, NINETY_FIFTH = 1.0, 2.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """`slipped`: the result fails without the fault, or in another way with it. `alone`: it fails
    in the same way where JAX is alone.
    """

    number: int
    function: str
    fault: str
    before: int
    minimum: int
    left: int
    seconds: float
    slipped: bool
    alone: bool
    problem: str = ""

    @property
    def ratio(self) -> float:
        return self.left / self.minimum if self.left >= 0 else float("inf")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="planted", description=__doc__)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--alone", default=sys.executable, help="a Python that has JAX alone")
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--log", type=Path, help="outcomes, a line each; continued if it exists")
    parser.add_argument("--keep", type=Path, help="keep the files in this folder")
    options = parser.parse_args(arguments)
    outcomes = _logged(options.log)
    done = {outcome.number for outcome in outcomes}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for number in range(options.first, planted.CASES, options.every):
            if number in done:
                continue
            outcome = _outcome(number, folder, options.alone, options.limit)
            outcomes.append(outcome)
            print(_line(outcome), flush=True)
            if options.log:
                with options.log.open("a") as log:
                    log.write(json.dumps(asdict(outcome)) + "\n")
    return _summary(outcomes)


def _logged(log: Path | None) -> list[Outcome]:
    if log is None or not log.exists():
        return []
    return [Outcome(**json.loads(line)) for line in log.read_text().splitlines()]


def _outcome(number: int, folder: Path, alone: str, limit: float) -> Outcome:
    try:
        case, file = planted.case(number, folder, sys.executable)
    except Exception as error:  # noqa: BLE001 - one case must not end the others
        words = f"not planted: {type(error).__name__}: {error}"
        return Outcome(number, "", "", 0, 1, -1, 0.0, False, False, words[:300])
    out = file.with_name(f"{file.stem}_reduced.py")
    out.unlink(missing_ok=True)
    result = reduction(file, case.fault.check, out, environment=case.environment, limit=limit)
    slipped = works_alone = False
    if result.left >= 0:
        check = parse(case.fault.check)
        seconds = check.seconds or 60.0
        with_fault = run_file(sys.executable, out, timeout=seconds, environment=case.environment)
        without = run_file(sys.executable, out, timeout=60.0)
        in_file = run_file(sys.executable, file, timeout=seconds, environment=case.environment)
        same = check.same(with_fault.failure, in_file.failure)
        slipped = not same or without.failure.kind != FINISHED
        there = run_file(alone, out, timeout=seconds, environment=case.environment)
        works_alone = check.holds(there.failure)
    return Outcome(
        number,
        case.function,
        case.fault.name,
        case.equations,
        case.fault.minimum,
        result.left,
        result.seconds,
        slipped,
        works_alone,
        result.problem,
    )


def _line(outcome: Outcome) -> str:
    left = f"{outcome.left} of {outcome.minimum}" if outcome.left >= 0 else outcome.problem
    words = [" slipped"] if outcome.slipped else []
    words += [" not alone"] if outcome.left >= 0 and not outcome.alone else []
    return (
        f"{outcome.number:3} {outcome.function:40} {outcome.fault:20} {outcome.before:4} -> {left}"
        f" in {outcome.seconds:.0f} s{''.join(words)}"
    )


def _summary(outcomes: Sequence[Outcome]) -> int:
    made = [outcome for outcome in outcomes if outcome.before]
    if not made:
        return 1
    ratios = sorted(outcome.ratio for outcome in made)
    median, late = statistics.median(ratios), ratios[int(0.95 * (len(ratios) - 1))]
    slips = sum(outcome.slipped for outcome in made)
    finished = [outcome for outcome in made if outcome.left >= 0]
    alone = sum(outcome.alone for outcome in finished)
    seconds = sorted(outcome.seconds for outcome in finished) or [0.0]
    print(
        "| planted | reduced | median | p95 | slips | run with JAX alone | seconds (median, max) |"
    )
    print("| -: | -: | -: | -: | -: | -: | -: |")
    print(
        f"| {len(made)} | {len(finished)} | {median:.2f} | {late:.2f} | {slips} "
        f"| {alone} | {statistics.median(seconds):.0f}, {seconds[-1]:.0f} |"
    )
    good = median <= MEDIAN and late <= NINETY_FIFTH and not slips and alone == len(made)
    return 0 if good else 1
