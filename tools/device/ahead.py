"""A process that compiles programs for a target and writes their figures.

`python -m tools.device.ahead TARGET RESULTS FILES NAMES`: lists are separated by the path separator
and commas.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from jaxsight.library import kernels as library
from tools.device.cases import Case, cases


def main() -> None:
    """Append a line of JSON to the results for each program."""
    target, results, files, names = sys.argv[1:]
    chosen = cases([Path(file) for file in files.split(os.pathsep)], names.split(","))
    with Path(results).open("a", encoding="utf-8") as written:
        for case in chosen:
            written.write(json.dumps({"name": case.name, **_figures(case, target)}) + "\n")
            written.flush()


def _figures(case: Case, target: str) -> dict[str, Any]:
    """Return a program's figures, or why there are none."""
    try:
        function, args, kwargs = case.call()
        found = library.kernels(function, target=target)(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - the program's, or the compiler's
        return {"refused": f"{type(error).__name__}: {error}"[:500]}
    seconds = found.estimate_seconds()
    return {
        "kernels": found.kernel_count,
        "kernels_at_most": found.kernels_at_most,
        "launches": found.launch_count,
        "launches_at_least": found.graph.launches_at_least,
        "launches_at_most": found.launches_at_most,
        "temp_bytes": found.temp_bytes,
        "temp_bytes_at_most": most if (most := found.temp_bytes_at_most) >= 0 else None,
        "estimate_us": None if seconds is None else round(seconds * 1e6, 2),
    }


if __name__ == "__main__":
    main()
