"""What capture costs: functions of libraries, traced and executed with and without it."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.repro.measuring.reductions import BOOT

MOST = 1.3

_SCRIPT = """
import gc, json, sys, time, warnings
warnings.simplefilter("ignore")
sys.path[:0] = {path!r}
import jax
from tests.repro.planted import functions
chosen = functions().values()
gc.collect()
gc.freeze()  # else a collection of all modules, 0.35 s, is part of one time or of the other
traced = ran = 0.0
for function, args in chosen:
    jitted = jax.jit(lambda *args: function(*args))
    start = time.perf_counter()
    jitted.trace(*args)
    traced += time.perf_counter() - start
    start = time.perf_counter()
    jax.block_until_ready(jitted(*args))
    ran += time.perf_counter() - start
print(json.dumps([traced, ran]))
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="overhead", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    root = Path(__file__).parents[3]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(_SCRIPT.format(path=[str(root), str(root / "server")]))
        plain, captured = [], []
        for number in range(options.rounds):
            case = Path(folder, f"case{number}")
            case.mkdir()
            run = [
                sys.executable,
                str(BOOT),
                "repro",
                "run",
                "script",
                str(case),
                "--",
                str(script),
            ]
            plain.append(_seconds([sys.executable, str(script)]))
            captured.append(_seconds(run))
    print("| | without | with capture | ratio |")
    print("| - | -: | -: | -: |")
    ratios = []
    for index, name in enumerate(("tracing", "compiling and running")):
        before = statistics.median(times[index] for times in plain)
        after = statistics.median(times[index] for times in captured)
        ratios.append(after / before)
        print(f"| {name} | {before:.2f} s | {after:.2f} s | {after / before:.2f} |")
    return 0 if ratios[0] <= MOST else 1


def _seconds(command: list[str]) -> list[float]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    times: list[float] = json.loads(done.stdout.strip().splitlines()[-1])
    return times
