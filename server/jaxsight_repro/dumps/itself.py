"""Run a dumped program itself, compiled by XLA, in a process like that of its repro."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import jax

from jaxsight_repro.checks.base import Check
from jaxsight_repro.failures import RunFailure
from jaxsight_repro.running import run_file
from jaxsight_source.compat.lowered import mlir
from jaxsight_source.files import reading

_DRIVER = """\
import runpy
from pathlib import Path

if True:
    import jaxsight

# It chooses the types of numbers before JAX is imported, and has the arguments.
inputs = runpy.run_path({repro!r})["inputs"]

import jax
import numpy as np

from jaxsight_repro.dumps.itself import run


def main(*arguments):
    return run(Path({program!r}), arguments)


{lines}
"""
"""The indented import is how a file asks `run_file` for jaxsight."""


def fails(
    artifact: str | bytes, repro: Path, checked: Check, *, timeout: float
) -> RunFailure | None:
    """Return how a program fails with the arguments of its repro.

    Args:
        artifact: its StableHLO.
        repro: the file that was written of it.
        checked: what it does wrong. None is returned if that is about JAX, such as its gradient.
        timeout: seconds after which it hangs.
    """
    lines = checked.lines(jitted=False)
    if any("main" in line.replace("main(*inputs())", "") for line in lines):
        return None
    with tempfile.TemporaryDirectory(prefix="jaxsight-dump-") as folder:
        program, driver = Path(folder, "program"), Path(folder, "run_dump.py")
        program.write_bytes(artifact.encode() if isinstance(artifact, str) else artifact)
        text = _DRIVER.format(
            repro=str(repro.absolute()), program=str(program), lines="\n".join(lines)
        )
        driver.write_text(text, encoding="utf-8")
        return run_file(sys.executable, driver, timeout=timeout).failure


def run(program: Path, arguments: tuple[object, ...]) -> list[jax.Array]:
    """Return the results of a StableHLO program."""
    content = reading.data(program)
    is_text = not content.startswith(b"ML\xefR")
    arrays = [jax.numpy.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    return mlir.run(content.decode() if is_text else content, arrays)
