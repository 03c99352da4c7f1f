"""Compare rows with `jaxsight.kernels`: `python -m tools.dataset.same_kernels DATASET [--rows N]`.

Loads the source of rows, and asks `jaxsight.kernels` about its function, arguments and targets in
this process. Prints each figure and kernel that differs, and a line for each target to quote:
how many rows agree. `tests.jaxsight_dataset.acceptance` compares a few rows with what the command prints.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from jaxsight_dataset.start import VARIABLES

FIGURES = ("kernel_count", "launch_count", "temp_bytes")
KERNEL = ("name", "kind", "launches", "bytes_in", "bytes_out")


def differences(row: dict[str, Any], stored: dict[str, Any]) -> list[str]:
    """What `jaxsight.kernels` says otherwise of a row on a target."""
    import jax

    import jaxsight
    from jaxsight_dataset.program import RowProgram
    from jaxsight_dataset.rows import loading
    from jaxsight_dataset.tables.again import program

    read = RowProgram.of_record(program(row))
    function = loading.load(read).function
    try:
        with jax.enable_x64(row["x64"]):
            asked = jaxsight.kernels(function, target=stored["target"])
            found = asked(*loading.arguments(read))
    except jaxsight.CannotCompile as error:
        return [f"{stored['refused']!r}, not {str(error)!r}"] if not stored["refused"] else []
    if stored["refused"]:
        return [f"refused ({stored['refused']}), not {found.kernel_count} kernels"]
    differing = [
        f"{name} {stored[name]}, not {getattr(found, name)}"
        for name in FIGURES
        if stored[name] is not None and stored[name] != getattr(found, name)
    ]
    ours = [tuple(each[name] for name in KERNEL) for each in stored["kernels"]]
    theirs = [tuple(getattr(each, name) for name in KERNEL) for each in found.graph.kernels]
    pairs = zip(ours, theirs, strict=False)
    return differing or [f"{mine}, not {other}" for mine, other in pairs if mine != other]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools.dataset.same_kernels", description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--rows", type=int, default=100, help="rows to compare, evenly chosen")
    parser.add_argument("--targets", help="NAME,…; by default those of the rows")
    options = parser.parse_args()
    os.environ.update({**VARIABLES, "JAX_ENABLE_X64": "1"})
    from jaxsight_dataset import read_rows

    rows = list(read_rows(options.dataset))
    chosen = rows[:: max(len(rows) // options.rows, 1)][: options.rows]
    names = options.targets.split(",") if options.targets else None
    compared, same = Counter[str](), Counter[str]()
    for row in chosen:
        for stored in row["targets"]:
            if names is not None and stored["target"] not in names:
                continue
            differing = differences(row, stored)
            compared[stored["target"]] += 1
            same[stored["target"]] += not differing
            for text in differing:
                print(f"#{row['number']} {row['function']} {stored['target']}: {text}", flush=True)
    print("\n| target | equal | compared |\n|---|--:|--:|")
    for target, count in compared.items():
        print(f"| `{target}` | {same[target]} | {count} |")
    return int(same != compared)


if __name__ == "__main__":
    sys.exit(main())
