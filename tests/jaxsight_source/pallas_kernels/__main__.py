"""Which kernels of Pallas that libraries ship become source, and a repro?

    python -m tests.jaxsight_source.pallas_kernels [NAME…]
    python -m tests.jaxsight_source.pallas_kernels --environment FOLDER [NAME…]

Without an environment, the kernels are those of jax. With one, they are those of the packages in
it (`of_libraries` lists their versions), which need not have been installed with their dependencies.
Kernels for TPUs are called with `interpret=True` if their function has that option, and are only
traced otherwise: same jaxpr, and same bits where they can run.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp

from jaxsight_source.options import Style
from tests.corpora.jaxsight_source.programs.registry import Call
from tests.jaxsight_repro.measuring import harnesses
from tests.jaxsight_source import gate
from tests.jaxsight_source.pallas_kernels import written
from tests.jaxsight_source.pallas_kernels.of_jax import KERNELS
from tests.jaxsight_source.pallas_kernels.of_libraries import LIBRARY_KERNELS


class NotTraced(Exception):
    """The library itself does not call the kernel here."""


def source(call: Call, style: Style) -> str:
    return lines(written(call, style).text)


def reproduced(call: Call) -> str:
    """Write a repro, and compare it with the kernel in a fresh process without the library."""
    function, args = gate.arrays_only(call.function, call)
    leaves = [
        jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf
        for leaf in args
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "kernel.py")
        harnesses.emit(function, leaves, file)
        text = file.read_text(encoding="utf-8")
        command = [sys.executable, "-m", "tests.jaxsight_repro", "harnesses", "--compare", folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise gate.Fails(done.stderr.strip().splitlines()[-1])
        _, outcome, detail = json.loads(done.stdout.splitlines()[-1])
        if outcome not in harnesses.SAME:
            raise gate.Fails(f"{outcome}: {detail}")
    return lines(text)


def lines(text: str) -> str:
    return f"{len(text.splitlines())} lines"


def cell(measure: Callable[[], str]) -> str:
    try:
        return measure()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        first = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {first:.200}".replace("|", "\\|")


def kernels_in(call: Call) -> int:
    """Return how many Pallas kernels a call has.

    Raises:
        NotTraced: the library does not call one, or does not run with this JAX.
    """
    function, args = gate.arrays_only(call.function, call)
    try:
        program = str(jax.make_jaxpr(function)(*args))
    except Exception as error:
        raise NotTraced(f"{type(error).__name__}: {error}") from error
    if not (count := len(re.findall(r"\bpallas_call\[", program))):
        raise NotTraced("no pallas_call")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.jaxsight_source.pallas_kernels")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--environment", type=Path, help="a folder with packages, or with lib/")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    makers = KERNELS
    if options.environment is not None:
        makers = LIBRARY_KERNELS
        found = next(options.environment.glob("lib/python3*/site-packages"), options.environment)
        sys.path.append(str(found))
    names = options.names or list(makers)
    kept = traced = 0
    print("| kernel | calls | pretty | lax | repro |\n|---|---:|---|---|---|", flush=True)
    for name in names:
        try:
            call = makers[name]()
            count = kernels_in(call)
        except (NotTraced, ImportError) as error:
            print(f"| {name} | not traced: {error!s:.150} | | | |", flush=True)
            continue
        traced += 1
        cells = [
            cell(functools.partial(source, call, "pretty")),
            cell(functools.partial(source, call, "lax")),
            cell(functools.partial(reproduced, call)),
        ]
        kept += all(each.endswith(" lines") for each in cells)
        print(f"| {name} | {count} | {' | '.join(cells)} |", flush=True)
    print(f"\n{kept} of {traced} kernels become source and a repro, with JAX {jax.__version__}")
    return int(kept < traced)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main())
