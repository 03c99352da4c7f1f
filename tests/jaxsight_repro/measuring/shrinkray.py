"""Beside Shrink Ray, which knows Python but not JAX, on the museum's training steps.

Needs the command `shrinkray`. Sizes are of the text without comments and docstrings.
"""

from __future__ import annotations

import argparse
import ast
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jaxlib

from tests.corpora.jaxsight_repro.museum import MUSEUM, Bug
from tests.jaxsight_repro.measuring.reductions import reduction

_INTERESTING = """#!/bin/sh
exec {python} {script} "$1"
"""
_TEST = """
import subprocess, sys
done = subprocess.run([sys.executable, sys.argv[1]], capture_output=True, text=True, timeout=60)
crash = {crash!r}
same = done.returncode == -11 if crash else "AssertionError: jit and eager" in done.stderr
sys.exit(0 if same else 1)
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="shrinkray", description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--shrinkray", default=shutil.which("shrinkray"))
    options = parser.parse_args(arguments)
    if options.shrinkray is None:
        print("shrinkray is not installed", file=sys.stderr)
        return 2
    print("| bug | before | Shrink Ray | seconds | jaxsight | seconds |")
    print("| - | -: | -: | -: | -: | -: |")
    for bug in MUSEUM:
        if jaxlib.__version__ not in bug.jaxlib or ">" in bug.check or options.only not in bug.name:
            continue
        before = size(bug.in_training)
        theirs, seconds = _theirs(bug, options.shrinkray, options.limit)
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "reduced.py")
            ours = reduction(bug.in_training, bug.check, out, limit=options.limit)
            left = str(size(out)) if out.exists() else ours.problem
        row = (bug.name, before, theirs, f"{seconds:.0f}", left, f"{ours.seconds:.0f}")
        print(f"| {' | '.join(map(str, row))} |", flush=True)
    return 0


def size(file: Path) -> int:
    """Characters of a file's code."""
    tree = ast.parse(file.read_text())
    if tree.body and isinstance(tree.body[0], ast.Expr):
        del tree.body[0]
    return len(ast.unparse(tree))


def _theirs(bug: Bug, shrinkray: str, limit: float) -> tuple[int, float]:
    """The size that Shrink Ray reaches, and the seconds it takes, at most `limit`."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        file = folder / "program.py"
        file.write_text(bug.in_training.read_text())
        script, test = folder / "test.py", folder / "interesting.sh"
        script.write_text(_TEST.format(crash=bug.check.startswith("crash")))
        quoted = {"python": shlex.quote(sys.executable), "script": shlex.quote(str(script))}
        test.write_text(_INTERESTING.format(**quoted))
        test.chmod(0o700)
        command = [shrinkray, "--ui=basic", "--input-type=arg", "--parallelism=2"]
        command += ["--timeout=60", str(test), str(file)]
        start = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
        return size(file), time.monotonic() - start
