"""What `jaxsight record` costs a program: `python -m tools.perf.recording [--rounds N]`.

Prints the ratio of processor time with and without it, in turns, for a training loop of small
jitted steps, a script of eager operations, pure Python, and a run of pytest.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from jaxsight.recording import FOLDER, ROOT, running

LIBRARY = """\
import jax, jax.numpy as jnp

def layer(w, x):
    return jnp.tanh(x @ w)

def loss(params, x, y):
    for w in params:
        x = layer(w, x)
    return jnp.mean((x - y) ** 2)

@jax.jit
def step(params, x, y, lr):
    grads = jax.grad(loss)(params, x, y)
    return [p - lr * g for p, g in zip(params, grads)]

def add(x, y):
    return x + y

def scaled(x, n):
    return add(x * n, x)

def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
"""
PROGRAMS = {
    "jitted.py": """\
import jax, jax.numpy as jnp, library
params, x = [jnp.ones((16, 16))] * 4, jnp.ones((8, 16))
for i in range(30_000):
    params = library.step(params, x, x, 0.1)
jax.block_until_ready(params)
""",
    "eager.py": """\
import jax.numpy as jnp, library
x = jnp.ones((8, 16))
for i in range(12_000):
    x = library.scaled(x, 1)
    if i % 100 == 0:
        library.loss([jnp.ones((16, 16))] * 4, x, x)
x.block_until_ready()
""",
    "python.py": """\
import jax.numpy as jnp, library
library.fibonacci(31)
library.add(jnp.ones(3), jnp.ones(3))
""",
    "test_library.py": """\
import jax.numpy as jnp, library, pytest

@pytest.mark.parametrize("n", range(60))
def test_step(n):
    x = jnp.ones((n + 1, 16))
    params = [jnp.ones((16, 16))] * 2
    for _ in range(3):
        params = library.step(params, x, x, 0.1)
    assert library.scaled(x, 2).shape == x.shape
    library.loss(params, x, x)
""",
}


def seconds(folder: Path, file: str, variables: dict[str, str]) -> float:
    """Run a program; return its processor time, which other processes do not change."""
    pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if file.startswith("test_") else []
    command = [sys.executable, *pytest, file]
    process = subprocess.Popen(command, cwd=folder, env=variables, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    plain = {**os.environ, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
    plain.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name, "project"), Path(name, "log")
        folder.mkdir()
        log.mkdir()
        for file, text in {"library.py": LIBRARY, **PROGRAMS}.items():
            (folder / file).write_text(text)
        observed = {**plain, FOLDER: str(log), ROOT: str(folder), "PYTHONPATH": str(running.SITE)}
        for file in PROGRAMS:
            seconds(folder, file, observed)  # compiles bytecode
            pairs = [
                (seconds(folder, file, plain), seconds(folder, file, observed))
                for _ in range(rounds)
            ]
            ratio = statistics.median(after / before for before, after in pairs)
            before, after = (statistics.median(times) for times in zip(*pairs, strict=True))
            print(f"{file:16} {before:6.2f} s  {after:6.2f} s  {ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
