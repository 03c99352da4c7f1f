"""What capture costs: functions of libraries, traced and executed with and without it.

Two processes, one of them under capture, trace each function in turns, so that both have the same
neighbours; time is that of the thread on its processor, and each function's is the median of
`--rounds`. JAX's caches are cleared between. A collection of all of Python's objects, which takes
as long as the process is large, runs before each function, and is in no time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.jaxsight_repro.measuring.reductions import BOOT

MOST = 1.3

_SCRIPT = """
import gc, sys, time, warnings
warnings.simplefilter("ignore")
sys.path[:0] = {path!r}
import jax
from tests.corpora.jaxsight_repro.planted import functions
chosen = list(functions().values())
gc.collect()
gc.freeze()
print("@", len(chosen), flush=True)
for line in sys.stdin:
    action, index = line.split()
    function, args = chosen[int(index)]
    jax.clear_caches()
    gc.collect()
    jitted = jax.jit(lambda *args: function(*args))
    start = time.thread_time()
    jitted.trace(*args)
    if action == "run":
        start = time.process_time()  # XLA compiles in threads of its own
        jax.block_until_ready(jitted(*args))
        print("@", time.process_time() - start, flush=True)
    else:
        print("@", time.thread_time() - start, flush=True)
"""


class _Measured:
    """A process that traces or runs functions, and says how long each took."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.functions = int(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("@ "):
                return line[2:]
        raise RuntimeError("the process ended")

    def seconds(self, action: str, index: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{action} {index}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def end(self) -> None:
        self._process.communicate()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="overhead", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tracing", action="store_true", help="trace only, which is quick")
    options = parser.parse_args(arguments)
    root = Path(__file__).parents[3]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.py")
        script.write_text(_SCRIPT.format(path=[str(root), str(root / "server")]))
        case = Path(folder, "case")
        case.mkdir()
        run = [sys.executable, str(BOOT), "repro", "run", "script", str(case), "--", str(script)]
        plain, captured = _Measured([sys.executable, str(script)]), _Measured(run)
        print("| | without | with capture | ratio |")
        print("| - | -: | -: | -: |")
        tracing = _compare("tracing", "trace", options.rounds, plain, captured)
        if not options.tracing:
            _compare("compiling and running", "run", 1, plain, captured)
        plain.end()
        captured.end()
    return 0 if tracing <= MOST else 1


def _compare(title: str, action: str, rounds: int, plain: _Measured, captured: _Measured) -> float:
    """Print a row of the table; return the ratio of the sums of each function's median."""
    before = after = 0.0
    for index in range(plain.functions):
        pairs = [
            (plain.seconds(action, index), captured.seconds(action, index)) for _ in range(rounds)
        ]
        before += statistics.median(pair[0] for pair in pairs)
        after += statistics.median(pair[1] for pair in pairs)
    print(f"| {title} | {before:.2f} s | {after:.2f} s | {after / before:.2f} |", flush=True)
    return after / before
