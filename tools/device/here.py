"""A process that compiles programs for this machine's device, runs and profiles them.

`python -m tools.device.here RESULTS FILES NAMES`: lists are separated by the path separator and
commas. JAX uses the platform that `JAX_PLATFORMS` names. Programs are compiled in threads and run
in turn.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax

from jaxsight.compiler.hlo import read
from jaxsight.measuring.programs import profiled
from jaxsight_source.jaxprs.arguments import with_numbers
from tools.device.cases import Case, cases

RUNS = 5
"""Runs that are profiled; figures are those of one."""
LONG = 0.2
"""Seconds of a run above which one is enough."""
_IMPORTS = threading.Lock()
_THREADS = 4
"""Programs that are compiled at a time: a GPU autotunes one, and four keep its CPU cores busy."""


def main() -> None:
    """Append a line of JSON to the results for each program, after one about the device."""
    results, files, names = sys.argv[1:]
    chosen = cases([Path(file) for file in files.split(os.pathsep)], names.split(","))
    device = jax.local_devices()[0]
    with (
        Path(results).open("a", encoding="utf-8") as written,
        ThreadPoolExecutor(_THREADS) as threads,
    ):

        def write(record: dict[str, Any]) -> None:
            written.write(json.dumps(record) + "\n")
            written.flush()

        write({"kind": device.device_kind, "platform": device.platform, "jax": jax.__version__})
        for case, compiled in [(case, threads.submit(_compiled, case)) for case in chosen]:
            try:
                write({"name": case.name, **_measured(*compiled.result(), device.platform)})
            except Exception as error:  # noqa: BLE001 - the program's, or the device's
                write({"name": case.name, "refused": f"{type(error).__name__}: {error}"[:500]})


def _compiled(case: Case) -> tuple[Any, Any]:
    """Return a program's executable, and its abstract arguments."""
    with _IMPORTS:  # a module that another thread executes lacks its last functions
        function, args, kwargs = case.call()
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    return jitted.lower(*args, **kwargs).compile(), (args, kwargs)


def _measured(executable: Any, arguments: Any, platform: str) -> dict[str, Any]:
    """Return the figures of one run of a program."""
    args, kwargs = jax.block_until_ready(with_numbers(arguments))

    def run() -> None:
        jax.block_until_ready(executable(*args, **kwargs))

    _timed(run)
    first = _timed(run)
    runs = 1 if first > LONG else RUNS
    profile = profiled(platform, lambda _: run(), runs)
    events = profile.times(lambda event: event.title or event.op)
    wall = min(first, *(_timed(run) for _ in range(runs)))
    hlo = executable.runtime_executable().hlo_modules()[0].to_string()
    graph = read(hlo, platform="cpu" if platform == "cpu" else "cuda")
    memory = executable.memory_analysis()
    return {
        "kernels": graph.kernel_count,
        "gpu_events": round(sum(each.calls for each in events), 2),
        "temp_bytes": memory.temp_size_in_bytes,
        "device_us": round(sum(each.seconds for each in events) * 1e6, 2),
        "wall_us_no_command_buffers": round(wall * 1e6, 1),
        "by_kernel": [
            [each.name, round(each.calls, 2), round(each.seconds * 1e6, 2)] for each in events
        ],
        "ops": [[kernel.title, kernel.name] for kernel in graph.kernels],
    }


def _timed(run: Callable[[], None]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
