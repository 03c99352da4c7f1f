"""Measure a generated dataset: `python -m tests.dataset.acceptance [--samples N] [OUT]`.

Makes a dataset twice, with one worker and with several, one of them killed once, and prints what
the figures of its specification are. An existing OUT is continued.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

GOAL_MADE, GOAL_STRUCTURES, GOAL_PRIMITIVES = 99.5, 60.0, 95.0

_OWN_CAUSES = {"duplicate", "structure of another split"}
"""Causes for which a program that works is no row."""


def command(out: Path, samples: int, jobs: int, seed: int) -> list[str]:
    counts = ["--samples", str(samples), "--jobs", str(jobs), "--seed", str(seed)]
    return [sys.executable, "-m", "jaxsight", "dataset", "generate", str(out), *counts]


def killed(arguments: list[str], after: float) -> None:
    process = subprocess.Popen(arguments, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()


def digests(out: Path) -> dict[str, str]:
    """The digests of a dataset's files."""
    manifest: dict[str, Any] = json.loads((out / "manifest.json").read_text())
    files: dict[str, str] = manifest["files"]
    return files


def share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "–"


def measure(out: Path, samples: int, jobs: int, seed: int) -> list[tuple[str, str, str]]:
    start = time.perf_counter()
    subprocess.run(command(out, samples, jobs, seed), check=True)
    seconds = time.perf_counter() - start
    printed = subprocess.run(
        [sys.executable, "-m", "jaxsight", "dataset", "stats", str(out), "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    stats = json.loads(printed.stdout)
    rejected = {k: v for k, v in stats["rejected"].items() if k not in _OWN_CAUSES}
    tried = stats["rows"] + stats["disagreements"] + sum(rejected.values())
    failing = sum(v for k, v in rejected.items() if k in ("load", "trace", "compile", "run"))
    often = sum(count >= 20 for count in stats["counts"]["primitive"].values())
    return [
        ("rows", str(stats["rows"]), str(samples)),
        ("trace, compile and run", share(tried - failing, tried), f"≥ {GOAL_MADE} %"),
        ("rows of all that were tried", share(stats["rows"], tried), ""),
        ("unique programs", share(stats["programs"], stats["rows"]), "100 %"),
        ("unique structures", share(stats["structures"], stats["rows"]), f"≥ {GOAL_STRUCTURES} %"),
        ("near duplicates", share(stats["near_duplicates"], stats["rows"]), "≤ 5 %"),
        ("disagreements", str(stats["disagreements"]), ""),
        ("primitives that occur", str(len(stats["counts"]["primitive"])), ""),
        ("primitives of 20 rows or more", str(often), ""),
        ("rows a second, and worker", f"{samples / seconds / jobs:.2f}", ""),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.dataset.acceptance", description=__doc__)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--once", action="store_true", help="do not make the dataset again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = options.out or Path(folder, "once")
        rows = measure(out, options.samples, options.jobs, options.seed)
        if not options.once:
            again = Path(folder, "again")
            killed(command(again, options.samples, 3, options.seed), 20.0)
            subprocess.run(command(again, options.samples, 3, options.seed), check=True)
            same = digests(out) == digests(again)
            rows.append(("same bytes with 3 workers, one run killed", str(same), "True"))
        verify = [sys.executable, "-m", "jaxsight", "dataset", "verify", str(out)]
        rows.append(
            ("verify", f"exit status {subprocess.run(verify, check=False).returncode}", "0")
        )
    print("| | measured | goal |\n|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
