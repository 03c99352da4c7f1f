"""`jaxsight check` on a package of a hundred functions, against a process that only traces them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from time import perf_counter as now

from tools.perf.editor import ENVIRONMENT, BenchError, milliseconds
from tools.perf.measures import Figure, Goal

FILES = 10
FUNCTIONS = 10
"""In each file."""

START = 1000.0
EACH = 5.0
"""Milliseconds of the goal: for all that a check does once, and for each function."""

PACKAGE = "checked"

_HEAD = '''\
"""Layers of group {file}."""

import jax
import jax.numpy as jnp

from {package}.shared import normalize

SCALE = {file}.5

'''

_FUNCTION = '''
def layer_{number}(x, w):
    """Apply a layer.

    Example inputs:
        x: f32[{rows}, 64]
        w: f32[64, 32]
    """
    hidden = jnp.tanh(normalize(x) @ w) * {number}.25
    return SCALE * jax.nn.softmax(hidden, axis=-1).sum(axis=0)

'''

_SHARED = """\
import jax.numpy as jnp


def normalize(x):
    return (x - x.mean(axis=-1, keepdims=True)) / jnp.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)
"""

_PLAIN = """
import importlib, sys
import jax
for number in range(int(sys.argv[1])):
    module = importlib.import_module(f"checked.group_{number}")
    for name, function in list(vars(module).items()):
        if name.startswith("layer_"):
            x, w = jax.ShapeDtypeStruct((8, 64), "float32"), jax.ShapeDtypeStruct((64, 32), "float32")
            jax.make_jaxpr(function)(x, w)
"""


def package(root: Path) -> None:
    """Write the package: functions with different programs, which share a helper."""
    folder = root / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "shared.py").write_text(_SHARED, encoding="utf-8")
    for file in range(FILES):
        numbers = range(file * FUNCTIONS, (file + 1) * FUNCTIONS)
        functions = [_FUNCTION.format(number=number, rows=8 + number) for number in numbers]
        head = _HEAD.format(file=file, package=PACKAGE)
        (folder / f"group_{file}.py").write_text(head + "".join(functions), encoding="utf-8")


def of_a_package(root: Path, runs: int) -> list[Figure]:
    """Milliseconds of whole processes: the first check, which compiles all functions, and the
    ones after it.
    """
    package(root)
    cache = root / "cache"
    environment = {**ENVIRONMENT, "XDG_CACHE_HOME": str(cache), "JAX_PLATFORMS": "cpu"}
    checking = [sys.executable, "-m", "jaxsight", "check", PACKAGE, "--python", sys.executable]
    checking += ["--target", "cpu"]  # whatever compilers are installed here
    tracing = [sys.executable, "-c", _PLAIN, str(FILES)]
    functions = FILES * FUNCTIONS
    examined = f"examined {functions + 1} of {functions + 1} functions"  # with the shared helper
    first = [_run(checking, root, environment, examined)]
    warm: list[float] = []
    plain: list[float] = []
    for _ in range(max(runs // 3, 2)):
        warm.append(_run(checking, root, environment, examined))
        plain.append(_run(tracing, root, environment, ""))
    goal = Goal(START + EACH * functions)
    baseline = "import and trace"
    return [
        Figure(f"first check of {functions} functions", "ms", first, plain, baseline),
        Figure(f"next check of {functions} functions", "ms", warm, plain, baseline, [goal]),
    ]


def _run(command: list[str], root: Path, environment: dict[str, str], expected: str) -> float:
    begin = now()
    done = subprocess.run(
        command,
        cwd=root,
        env={**environment, "PYTHONPATH": os.pathsep.join((str(root), *_paths()))},
        capture_output=True,
        text=True,
        check=False,
    )
    spent = milliseconds(begin)
    if done.returncode not in (0, 1) or expected not in done.stdout:
        raise BenchError(f"{command[1:4]} failed: {done.stderr or done.stdout}")
    return spent


def _paths() -> list[str]:
    return os.environ.get("PYTHONPATH", "").split(os.pathsep)
