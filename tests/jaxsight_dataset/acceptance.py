"""Measure a generated dataset: `python -m tests.jaxsight_dataset.acceptance [--samples N] [OUT]`.

Makes a dataset, and again with another number of workers, which are killed now and then. Compares
figures of rows with those of `jaxsight kernels`. Prints what the goals of datasets are about. An
existing OUT is continued.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jaxsight_dataset import read_rows

GOAL_MADE, GOAL_STRUCTURES, GOAL_PRIMITIVES = 99.5, 60.0, 95.0

_OWN_CAUSES = {"duplicate", "structure of another split"}
"""Causes for which a program that works is no row."""


_EQUAL = ("kernel_count", "launch_count", "temp_bytes", "argument_bytes", "output_bytes", "flops")
"""The figures of a row, where it has them, that `jaxsight kernels` prints, too."""


def jaxsight(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "jaxsight", *arguments]


def command(out: Path, options: argparse.Namespace, jobs: int) -> list[str]:
    counts = ["--samples", str(options.samples), "--jobs", str(jobs), "--seed", str(options.seed)]
    others = ["--targets", options.targets, "--python", options.python, "--spec", options.spec]
    return jaxsight("dataset", "generate", str(out), *counts, *others)


def survives(arguments: list[str], seconds: float) -> bool:
    """Kill a command with its children after some time; return whether it had ended before."""
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True


def equal(out: Path, count: int, options: argparse.Namespace) -> str:
    """Compare the figures of rows with those of `jaxsight kernels`."""
    same, compared = 0, 0
    columns = ["function", "source_code", "targets"]
    for row in itertools.islice(read_rows(out, columns=columns), count):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "program.py")
            file.write_text(row["source_code"])
            names = [name for target in row["targets"] for name in ("--target", target["target"])]
            asked = jaxsight("kernels", f"{file}:{row['function']}", "--json", *names)
            printed = subprocess.run(
                [*asked, "--python", options.python],
                check=False,
                capture_output=True,
                text=True,
                env={**os.environ, "JAX_ENABLE_X64": "1"},
            )
        reports = json.loads(printed.stdout or "[]")
        reports = reports if isinstance(reports, list) else [reports]
        by_name = {report["target"]: report for report in reports}
        for target in row["targets"]:
            report = by_name.get(target["target"], {})
            compared += 1
            differing = {
                name: (target[name], report.get(name))
                for name in _EQUAL
                if target[name] is not None and target[name] != report.get(name)
            }
            same += not differing
            if differing:
                print(row["function"], target["target"], differing, printed.stderr[-200:])
    return share(same, compared)


def digests(out: Path) -> dict[str, str]:
    """The digests of a dataset's files."""
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    files: dict[str, str] = manifest["files"]
    return files


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "–"


def measure(out: Path, options: argparse.Namespace) -> list[tuple[str, str, str]]:
    start = time.perf_counter()
    subprocess.run(command(out, options, options.jobs), check=True)
    seconds = time.perf_counter() - start
    printed = subprocess.run(
        jaxsight("dataset", "stats", str(out), "--json"), check=True, capture_output=True, text=True
    )
    stats = json.loads(printed.stdout)
    rejected = {k: v for k, v in stats["rejected"].items() if k not in _OWN_CAUSES}
    tried = stats["rows"] + stats["disagreements"] + sum(rejected.values())
    failing = sum(v for k, v in rejected.items() if k in ("load", "trace", "compile", "run"))
    often = sum(count >= 20 for count in stats["counts"]["primitive"].values())
    return [
        ("rows", str(stats["rows"]), str(options.samples)),
        ("trace, compile and run", share(tried - failing, tried), f"≥ {GOAL_MADE} %"),
        ("rows of all that were tried", share(stats["rows"], tried), ""),
        ("unique programs", share(stats["programs"], stats["rows"]), "100 %"),
        ("unique structures", share(stats["structures"], stats["rows"]), f"≥ {GOAL_STRUCTURES} %"),
        ("near duplicates", share(stats["near_duplicates"], stats["rows"]), "≤ 5 %"),
        ("disagreements", str(stats["disagreements"]), ""),
        ("primitives that occur", str(len(stats["counts"]["primitive"])), ""),
        ("primitives of 20 rows or more", str(often), ""),
        ("rows a second, and worker", f"{options.samples / seconds / options.jobs:.2f}", ""),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.jaxsight_dataset.acceptance", description=__doc__)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default="cpu")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has JAX")
    parser.add_argument("--equal", type=int, default=10, help="rows to compare with `kernels`")
    parser.add_argument("--workers", type=int, nargs="*", default=[7], help="when made again")
    parser.add_argument("--shard-size", type=int, default=250, help="a kill loses a shard at most")
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        options.spec = str(Path(folder, "spec.toml"))
        Path(options.spec).write_text(f"shard_size = {options.shard_size}\n")
        out = options.out or Path(folder, "once")
        start = time.perf_counter()
        rows = measure(out, options)
        seconds = time.perf_counter() - start
        rows.append(("equal to `jaxsight kernels`", equal(out, options.equal, options), "100 %"))
        for workers in options.workers:
            again, chance, kills = Path(folder, f"again-{workers}"), random.Random(workers), 0
            repeated = command(again, options, workers)
            while kills < options.kills:
                # A run that is killed before it has a shard makes no progress.
                if survives(repeated, chance.uniform(0.2, 2.5) * seconds / max(options.kills, 1)):
                    break
                kills += 1
            subprocess.run(repeated, check=True)
            same = str(digests(out) == digests(again))
            rows.append((f"same bytes, {workers} workers, {kills} kills", same, "True"))
        status = subprocess.run(jaxsight("dataset", "verify", str(out)), check=False).returncode
        rows.append(("verify", f"exit status {status}", "0"))
    print("| | measured | goal |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
