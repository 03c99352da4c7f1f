"""Tries faults against the tests of their lines, and those of them that the gate selects."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random

from tools.faults.candidates import Fault
from tools.faults.choosing import Limits, chosen
from tools.faults.index import Case, Index
from tools.faults.scratch import Outcome, Scratch

PATIENCE = 120
"""Seconds after which a test hangs, if it does not take a quarter of that without a fault."""
GATE, LINE, NOTHING, CHANGED = "gate", "line", "nothing", "changed"
"""What finds a fault: the gate (and so the tests of its line), these alone, neither; or its line is
not what it was."""
_KILLED = "hangs or crashes"
_AGAIN = 4
"""Times the limits, for the gate's tests of a line where only others have found a fault."""

InGate = Callable[[Iterable[str], str], set[str]]


@dataclass(frozen=True, slots=True)
class Result:
    """What the tests of a fault's line find."""

    found_by: str
    test: str = ""
    """The test that fails, or what pytest fails at."""
    how: str = ""
    in_gate: int = 0
    """Tests of the line that the gate selects."""
    outside: int = 0
    """The others."""
    ran: int = 0
    seconds: float = 0
    everything: str = ""
    """What all tests find, of the faults that are drawn for that."""


@dataclass(slots=True)
class Results:
    """Results by the numbers of faults, kept in a file after each."""

    path: Path
    of: dict[int, Result] = field(default_factory=dict)
    flaky: set[str] = field(default_factory=set)
    """Tests that fail without any fault."""
    passing: set[str] = field(default_factory=set)
    """Tests that found a fault and pass without it."""

    @classmethod
    def read(cls, path: Path) -> Results:
        """Return what a file holds; nothing where there is none."""
        if not path.is_file():
            return cls(path)
        kept = json.loads(path.read_text(encoding="utf-8"))
        of = {int(number): Result(**result) for number, result in kept["of"].items()}
        return cls(path, of, {*kept["flaky"]}, {*kept["passing"]})

    def keep(self, number: int, result: Result) -> None:
        """Add a result and write all."""
        self.of[number] = result
        self.write()

    def write(self) -> None:
        """Write the file."""
        of = {str(number): asdict(result) for number, result in sorted(self.of.items())}
        kept = {"of": of, "flaky": sorted(self.flaky), "passing": sorted(self.passing)}
        self.path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Trial:
    """How faults are tried."""

    scratch: Scratch
    index: Index
    in_gate: InGate
    limits: Limits
    """For the tests of a line that the gate selects."""
    outside: Limits
    """For those that it does not, which are slower."""

    def all(self, faults: Sequence[Fault], results: Results) -> None:
        """Try all faults that have no result yet.

        A test that fails without the fault does not count: those that found something are run
        without any in the end, together, and a fault that a failing one found is tried again.
        """
        while waiting := [n for n in range(len(faults)) if n not in results.of]:
            for number in waiting:
                result = self.one(faults[number], results.flaky)
                results.keep(number, result)
                print(row(number, faults[number], result), flush=True)
            self._verify(results)

    def everything(
        self, faults: Sequence[Fault], results: Results, count: int, workers: int
    ) -> None:
        """Try all tests on some faults, drawn by lot of those with results.

        All tests have those of the line among them, so only what these do not find is run.
        """
        drawn = Random(len(faults)).sample(sorted(results.of), min(count, len(results.of)))
        for number in drawn:
            result = results.of[number]
            if result.everything or result.found_by == CHANGED:
                continue
            found = result.test or self._of_all(faults[number], results, workers)
            results.keep(number, replace(result, everything=found or NOTHING))
            print(f"everything: {number} {found or NOTHING}", flush=True)

    def _of_all(self, fault: Fault, results: Results, workers: int) -> str:
        """Return the first test that fails of all; empty if none does."""
        while True:
            cases = [case for case in self.index.all() if case.name not in results.flaky]
            with self.scratch.fault(fault):
                outcome = self._run(cases, "--exitfirst", f"-n{workers}", "--dist=worksteal")
            found = _first(outcome)
            if found is None or "::" not in found[0]:
                return found[0] if found else ""
            again = self.scratch.run([found[0]], PATIENCE, PATIENCE)
            if not again.failed and not again.killed:
                return found[0]
            results.flaky.add(found[0])
            results.write()

    def one(self, fault: Fault, flaky: set[str]) -> Result:
        """Try one fault."""
        began = time.monotonic()
        try:
            with self.scratch.fault(fault):
                result = self._found(fault, flaky)
        except ValueError:
            result = Result(CHANGED)
        return replace(result, seconds=round(time.monotonic() - began, 1))

    def _found(self, fault: Fault, flaky: set[str]) -> Result:
        groups = [
            [case for case in group if case.name not in flaky]
            for group in self.index.tests(fault.file, fault.lines)
        ]
        selected = self.in_gate([case.name for group in groups for case in group], fault.file)
        gate = [[case for case in group if case.name in selected] for group in groups]
        others = [[case for case in group if case.name not in selected] for group in groups]
        result = Result(NOTHING, in_gate=sum(map(len, gate)), outside=sum(map(len, others)))
        first = chosen(gate, self.limits)
        result = self._tried(result, first, GATE)
        if result.found_by == NOTHING:
            # A search that finds nothing with ten cases may find it with all.
            whole = [
                [case for case in group if self.scratch.is_of_search(case.file)] for group in gate
            ]
            result = self._tried(result, chosen([*others, *whole], self.outside), LINE)
        if result.found_by == LINE:
            # Does the gate have one after all, among those that the limits left?
            done = {case.name for case in first}
            rest = [[case for case in group if case.name not in done] for group in gate]
            result = self._tried(result, chosen(rest, self.limits.times(_AGAIN)), GATE)
        return result

    def _tried(self, result: Result, cases: Sequence[Case], name: str) -> Result:
        """Return a result with what some tests find."""
        if not cases:
            return result
        outcome = self._run(cases, "--exitfirst", as_gate=name == GATE)
        result = replace(result, ran=result.ran + len(outcome.ended))
        if found := _first(outcome):
            return replace(result, found_by=name, test=found[0], how=found[1])
        return result

    def _run(self, cases: Sequence[Case], *options: str, as_gate: bool = False) -> Outcome:
        patience = max(_patience(case) for case in cases)
        limit = 4 * sum(case.seconds for case in cases)
        names = [case.name for case in cases]
        return self.scratch.run(names, patience, limit, *options, as_gate=as_gate)

    def _verify(self, results: Results) -> None:
        """Run what found a fault without it."""
        finders = {result.test: result for result in results.of.values() if "::" in result.test}
        unknown = {*finders} - results.passing - results.flaky
        as_gate = {test for test in unknown if finders[test].found_by == GATE}
        hung = {test for test in unknown if finders[test].how == _KILLED}
        for test in sorted(hung):
            # On a busy machine a slow test resembles one that hangs: half the time has to do.
            self._verify_some([test], results, 0.5, test in as_gate)
        self._verify_some(sorted((unknown & as_gate) - hung), results, 2, True)
        self._verify_some(sorted(unknown - as_gate - hung), results, 2, False)
        results.of = {n: each for n, each in results.of.items() if each.test not in results.flaky}
        results.write()

    def _verify_some(
        self, tests: Sequence[str], results: Results, share: float, as_gate: bool
    ) -> None:
        """Run tests, again without those that end the process, each in a share of its patience."""
        patience = {case.name: _patience(case) for case in self.index.all()}
        waiting = [*tests]
        while waiting:
            each = share * max(patience[test] for test in waiting)
            outcome = self.scratch.run(waiting, each, each * len(waiting), as_gate=as_gate)
            failing = {*outcome.failed, outcome.killed or ""} & {*waiting}
            passing = ({*outcome.ended} & {*waiting}) - failing
            if not failing | passing:
                raise SystemExit(f"tests do not run without a fault:\n{outcome.output[-2000:]}")
            results.flaky |= failing
            results.passing |= passing
            waiting = [test for test in waiting if test not in failing | passing]


def _patience(case: Case) -> float:
    return max(PATIENCE, 4 * case.seconds)


def _first(outcome: Outcome) -> tuple[str, str] | None:
    """Return the first test that fails and how."""
    if outcome.failed:
        return outcome.failed[0], _reason(outcome.output)
    if outcome.killed:
        return outcome.killed, _KILLED
    return ("pytest", _reason(outcome.output)) if outcome.broken else None


def _reason(output: str) -> str:
    """Return the line of pytest's output that says most."""
    lines = output.splitlines()
    for beginning in ("E  ", "FAILED", "ERROR", ""):
        for line in lines:
            if line.strip() and line.startswith(beginning):
                return line.strip()[:200]
    return ""


def row(number: int, fault: Fault, result: Result) -> str:
    """Return a result as a row of the table."""
    by_line = {GATE: "line", LINE: "line"}.get(result.found_by, "-")
    by_gate = "gate" if result.found_by == GATE else "-"
    state = "changed" if result.found_by == CHANGED else f"{by_line:5}{by_gate:5}"
    place = f"{fault.file.removeprefix('server/jaxsight/')}:{fault.line}"
    spent = f"{result.ran:3} tests {result.seconds:6.1f} s"
    return f"{number:3} {fault.kind:9} {place:60} {state:10} {spent}  {result.test}"


def table(faults: Sequence[Fault], results: Results) -> str:
    """Return all results, what no test finds, and the measure."""
    lines = [row(n, faults[n], result) for n, result in sorted(results.of.items())]
    by = {
        name: [n for n, result in sorted(results.of.items()) if result.found_by == name]
        for name in (GATE, LINE, NOTHING, CHANGED)
    }
    titles = {LINE: "The gate misses", NOTHING: "Nothing finds (perhaps the same program)"}
    for name, title in titles.items():
        if by[name]:
            lines += ["", f"{title}:"]
            for n in by[name]:
                lines += [f"{n:3} {faults[n].file}:{faults[n].line}"]
                lines += [f"    - {faults[n].before.strip()}", f"    + {faults[n].after.strip()}"]
    found = len(by[GATE]) + len(by[LINE])
    for n, result in sorted(results.of.items()):
        if result.everything:
            lines += [f"All tests on {n} (found by {result.found_by}): {result.everything}"]
    changed = f", {len(by[CHANGED])} of changed lines" if by[CHANGED] else ""
    measure = f"gate finds {len(by[GATE])} of {found} that the tests of their line find"
    lines += ["", f"{measure} ({len(results.of)} faults{changed})"]
    return "\n".join(lines)
