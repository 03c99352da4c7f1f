"""`python -m tools.perf`: measures what the goals are about, each figure with its baseline in the
same run.

Nothing here fails because something is slow: machines differ. It prints a table, says what is worse
than in the stored one (`stored.json`) by a tenth, and writes every sample as JSON. The status is 1
if something could not be measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tools.perf import (
    checking,
    compiling,
    crowding,
    hovering,
    processes,
    reading,
    starting,
    stored,
    training,
    turns,
    waterfall,
    writing,
)
from tools.perf.measures import Figure, table

BENCHES: dict[str, Callable[[Path, int], list[Figure]]] = {
    "known": hovering.known,
    "edits": hovering.after_edits,
    "long-files": hovering.long_files,
    "initialize": starting.introductions,
    "first-hover": starting.first_hovers,
    "confinement": starting.confinement,
    "training": training.first_hints,
    "commands": starting.commands,
    "memory": processes.memory,
    "window": processes.window,
    "kill": processes.replacements,
    "kernels": compiling.after_edits,
    "kernels-ahead": compiling.ahead_of_time,
    "kernels-devices": compiling.of_several_devices,
    "findings": compiling.with_findings,
    "moved-lines": compiling.moved_lines,
    "cache": compiling.cache_hits,
    "check": checking.of_a_package,
    "reading": reading.by_size,
    "writing": writing.by_size,
    "writing-pretty": writing.pretty,
    "writing-memory": writing.memory,
    "turns": turns.by_document,
    "crowd": crowding.documents,
    "memory-after-edits": crowding.edits,
    "waterfall": waterfall.by_program,
}

RUNS = 30
QUICK = 8


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.perf", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=BENCHES, help="measure this (repeat for more)"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} runs instead of {RUNS}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples here")
    parser.add_argument("--store", action="store_true", help="compare later runs with this one")
    options = parser.parse_args()
    runs = QUICK if options.quick else RUNS
    figures: list[Figure] = []
    failed: list[str] = []
    for name in options.only or BENCHES:
        print(f"{name} …", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="jaxsight-bench-") as folder:
            # A root of its own: no settings and no environment of a project around it.
            Path(folder, "pyproject.toml").touch()
            try:
                figures += BENCHES[name](Path(folder), runs)
            except Exception as error:  # noqa: BLE001 - the others are measured all the same
                traceback.print_exc()
                failed.append(f"{name}: failed: {error}")
    remarks = stored.worse(figures, stored.read())
    again = [f"{name}: {remark}" for name, remark in remarks.items()]
    print("\n".join([table(figures, remarks), *again, *failed]))
    if options.json is not None:
        data = {"machine": _machine(), "figures": [figure.data() for figure in figures]}
        options.json.write_text(json.dumps(data, indent=1, ensure_ascii=False), encoding="utf-8")
    if options.store:
        stored.store(figures)
    if failed:
        sys.exit(1)


def _machine() -> dict[str, Any]:
    load: list[float] = list(os.getloadavg()) if hasattr(os, "getloadavg") else []
    return {
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "load": load,
        "python": platform.python_version(),
        "jax": version("jax"),
        "pygls": version("pygls"),
    }


if __name__ == "__main__":
    main()
