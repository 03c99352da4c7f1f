"""Measure the memory of workers: `python -m tests.jaxsight_dataset.worker_memory [--samples N]`.

Generates a dataset as one shard, so that the same workers make all rows, and samples the resident
memory of each process once a second. Prints what the second half of the time needs more than the
first, a process a line: quote it with the number of rows. A dataset has new workers for each shard.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from jaxsight.workers.watchdog import guardian


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="tests.jaxsight_dataset.worker_memory", description=__doc__
    )
    parser.add_argument("--samples", type=int, default=300)
    options = parser.parse_args()
    resident: dict[int, list[int]] = defaultdict(list)
    commands: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder, "spec.toml")
        spec.write_text(f"samples = {options.samples}\nshard_size = {2 * options.samples}\n")
        out = ["generate", str(Path(folder, "pairs")), "--spec", str(spec), "--jobs", "1"]
        command = [sys.executable, "-m", "jaxsight", "dataset", *out, "--python", sys.executable]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None:
                for pid in guardian.descendants(process.pid):
                    resident[pid].append(guardian.resident([pid]))
                    commands[pid] = name(pid) or commands.get(pid, "")
                time.sleep(1.0)
    print(
        f"{options.samples} rows\n\n| process | seconds | MiB, first half | second half | growth |"
    )
    print("|---|--:|--:|--:|--:|")
    for pid, sizes in resident.items():
        half = len(sizes) // 2
        if half < 5:
            continue
        # The start of a process, when it imports JAX, is left out.
        halves = (
            statistics.median(part) / 2**20 for part in (sizes[half // 4 : half], sizes[half:])
        )
        first, second = halves
        print(
            f"| {commands[pid]} | {len(sizes)} | {first:.0f} | {second:.0f} | {second - first:+.0f} |"
        )


def name(pid: int) -> str:
    """The end of a process's command line."""
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(arguments[-3:]).decode(errors="replace").strip()


if __name__ == "__main__":
    main()
