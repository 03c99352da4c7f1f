"""The commands of `python -m tools.faults`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from tools.faults.candidates import Fault
from tools.faults.choosing import Limits
from tools.faults.drawing import draw
from tools.faults.index import Index, reported, write
from tools.faults.recording import ROOT, record
from tools.faults.rows import read
from tools.faults.scratch import scratch
from tools.faults.trying import Results, Trial, table
from tools.suite.running import REPORTS


def main() -> int:
    """Run a command; return the exit status."""
    options = _parser().parse_args()
    match options.command:
        case "record":
            return record(options.folder, options.parts)
        case "merge":
            recorded = read(options.folder, options.root)
            write(recorded, options.root, reported(options.reports), options.index)
            print(f"{len(recorded.tests)} tests, {len(recorded.lines)} lines")
        case "draw":
            faults = draw(ROOT, Index(options.index, ROOT), options.seed, options.count)
            text = json.dumps([asdict(fault) for fault in faults], indent=1, ensure_ascii=False)
            options.faults.write_text(text + "\n", encoding="utf-8")
            print(f"{len(faults)} faults")
        case "try":
            _try(options)
        case "table":
            print(table(_faults(options.faults), Results.read(_results(options.faults))))
    return 0


def _try(options: argparse.Namespace) -> None:
    from tools.faults.gate import in_gate

    faults, results = _faults(options.faults), Results.read(_results(options.faults))
    wanted = faults[: options.first]
    # The scratch copy is removed also when this process is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with scratch(ROOT, options.revision) as tree:
        gate, outside = (
            Limits(options.tests, seconds) for seconds in (options.seconds, options.outside)
        )
        trial = Trial(tree, Index(options.index, tree.tree), in_gate, gate, outside)
        trial.all(wanted, results)
        if options.everything:
            trial.everything(faults, results, options.everything, options.workers)
    print(table(faults, results))


def _faults(path: Path) -> list[Fault]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Fault(**{**row, "lines": tuple(row["lines"])}) for row in rows]


def _results(faults: Path) -> Path:
    return faults.with_suffix(".results.json")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser(
        "record", help="run parts of the suite, and record the lines of each test"
    )
    recording.add_argument("folder", type=Path)
    recording.add_argument("parts", nargs="+", help="names of parts on the newest JAX")
    merging = commands.add_parser("merge", help="write the index of the tests of each line")
    merging.add_argument("folder", type=Path, help="the folder of `record`")
    merging.add_argument("index", type=Path, help="the SQLite file to write")
    merging.add_argument(
        "--root", type=Path, default=ROOT, help="the tree of the run; by default this one"
    )
    merging.add_argument(
        "--reports", type=Path, default=REPORTS, help="of the same run, for durations"
    )
    drawing = commands.add_parser("draw", help="draw faults of lines that tests execute")
    drawing.add_argument("faults", type=Path, help="the JSON file to write")
    drawing.add_argument("--index", type=Path, required=True)
    drawing.add_argument("--seed", type=int, default=0)
    drawing.add_argument("--count", type=int, default=60)
    trying = commands.add_parser("try", help="try faults; a run that was cut off goes on")
    trying.add_argument("faults", type=Path)
    trying.add_argument("--index", type=Path, required=True)
    trying.add_argument("--revision", default="HEAD", help="what faults are set in")
    trying.add_argument("--first", type=int, help="try only so many")
    trying.add_argument("--tests", type=int, default=150, help="at most so many of a line's tests")
    trying.add_argument("--seconds", type=float, default=60, help="of a line's tests in the gate")
    trying.add_argument("--outside", type=float, default=120, help="of those outside the gate")
    trying.add_argument(
        "--everything", type=int, default=0, help="draw so many to try all tests on"
    )
    trying.add_argument("--workers", type=int, default=1, help="for all tests")
    table = commands.add_parser("table", help="print the results so far")
    table.add_argument("faults", type=Path)
    return parser


if __name__ == "__main__":
    sys.exit(main())
