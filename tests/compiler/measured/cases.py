"""Measured times and stored HLO of programs for an absent H100.

`python -m tests.compiler.measured.cases [TARGET] [PATTERN…]` compiles those whose names match and
keeps their optimized HLO in `hlo.zip`; the environment needs the target's compiler.
"""

from __future__ import annotations

import fnmatch
import inspect
import json
import re
import sys
import time
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from jaxsight.compiler.hlo import read
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Graph
from tests.compiler.estimate_cases import optimized
from tests.compiler.measured import Function, Measured
from tools.device.cases import LARGE

HERE = Path(__file__).parent
ARCHIVE = HERE / "hlo.zip"
TARGET = "cuda:h100"
_DATE = (2026, 11, 1, 0, 0, 0)
_INPUT = re.compile(r"^\s*([\w, ]+): (\S.*)$")
_SHORT = {"f": "float", "bf": "bfloat", "i": "int", "u": "uint", "c": "complex"}


def programs() -> dict[str, Measured]:
    """Return all programs by name: `large/attention`, `calibration/sort f32 rows/4096x4096`."""
    from tests.compiler.measured import workloads
    from tests.compiler.measured.calibration import SINGLES
    from tools.device import large

    with_docstrings = {
        f"{module.__name__.rpartition('.')[2]}/{name}": Measured(function, _types(function))
        for module in (large, workloads)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if "Example inputs" in (function.__doc__ or "")
    }
    return with_docstrings | {f"calibration/{name}": each for name, each in SINGLES.items()}


def _types(function: Function) -> tuple[str, ...]:
    section = inspect.cleandoc(function.__doc__ or "").partition("Example inputs:")[2]
    return tuple(
        type
        for names, type in (
            match.groups() for match in map(_INPUT.match, section.splitlines()) if match
        )
        for _ in names.split(",")
    )


def measured() -> dict[str, float]:
    """Return the seconds on the device by the name of the program."""
    singles = json.loads((HERE / "calibration_h100.json").read_text(encoding="utf-8"))
    programs = json.loads(LARGE.with_name("large_h100.json").read_text(encoding="utf-8"))
    micros = {f"calibration/{name}": micro for name, micro in singles.items()}
    micros |= {f"large/{name}": each["device"]["device_us"] for name, each in programs.items()}
    return {name: micro * 1e-6 for name, micro in micros.items()}


@cache
def _archive() -> zipfile.ZipFile:
    return zipfile.ZipFile(ARCHIVE)


def stored(target: str) -> list[str]:
    """Return the programs whose HLO for a target is stored."""
    folder = f"{target.replace(':', '_')}/"
    names = (name for name in _archive().namelist() if name.startswith(folder))
    return [name.removeprefix(folder).removesuffix(".txt") for name in names]


@cache
def graph(name: str, target: str = TARGET) -> Graph:
    """Read the kernels of a program from its stored HLO."""
    text = _archive().read(f"{target.replace(':', '_')}/{name}.txt").decode()
    chosen = parse(target)
    return read(text, platform=chosen.platform, capability=chosen.capability)


def _argument(type: str) -> Any:
    import jax

    dtype, _, shape = type.rstrip("]").partition("[")
    lengths = tuple(int(length) for length in shape.split(",") if length.strip())
    if dtype.startswith("key"):
        name = {"fry": "threefry2x32", "rbg": "rbg"}[dtype[4:-1]]
        return jax.eval_shape(lambda: jax.random.key(0, impl=name))
    letters = dtype.rstrip("0123456789")
    long = _SHORT.get(letters, letters) + dtype[len(letters) :]
    return jax.ShapeDtypeStruct(lengths, long)


def main(words: list[str]) -> None:
    """Compile the programs that match, and keep the others."""
    target = next((word for word in words if ":" in word), TARGET)
    patterns = [word for word in words if word != target]
    kept = {}
    if ARCHIVE.exists():
        with zipfile.ZipFile(ARCHIVE) as archive:
            kept = {name: archive.read(name) for name in archive.namelist()}
    for name, program in programs().items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns or ["*"]):
            continue
        begun = time.monotonic()
        try:
            hlo = optimized(program.function, map(_argument, program.types), target)
            kept[f"{target.replace(':', '_')}/{name}.txt"] = hlo.encode()
        except RuntimeError as error:
            print(f"{name}: {error!r}"[:300], flush=True)
            continue
        print(f"{name}: {time.monotonic() - begun:.1f} s", flush=True)
        with zipfile.ZipFile(ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry in sorted(kept):
                archive.writestr(zipfile.ZipInfo(entry, _DATE), kept[entry], zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(sys.argv[1:])
