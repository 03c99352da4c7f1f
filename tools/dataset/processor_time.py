"""Measure the processor time of rows: `python -m tools.dataset.processor_time [--samples N]`.

Makes a dataset with one job and verifies it; then a loop in plain JAX computes columns of the same
programs, with checks of the same things, but compiles the StableHLO of every row again. All processes
count, with their starts. Quote the machine's load.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GOAL_ROW, GOAL_VERIFIED, GOAL_RATIO = 0.2, 0.05, 3.0
STEPS, DIRECTIONS = (1e-2, 1e-3), 7


def processor_seconds(*arguments: str) -> float:
    """Run Python, and return the processor time of all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def naive(out: Path) -> None:
    """Make columns of the programs of a dataset, and check them, in plain JAX."""
    os.environ |= {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1", "JAX_NUM_CPU_DEVICES": "8"}
    import jax
    import jax.numpy as jnp
    import numpy as np

    from jaxsight_dataset import read_rows
    from jaxsight_dataset.compat import reimport
    from jaxsight_dataset.program import RowProgram
    from jaxsight_dataset.rows import loading
    from jaxsight_dataset.tables.again import program

    def inexact(array: Any) -> bool:
        return bool(jnp.issubdtype(array.dtype, jnp.inexact))

    def columns(function: Any, *arguments: Any) -> Iterator[Any]:
        traced = jax.jit(function, keep_unused=True).trace(*arguments)
        lowered = traced.lower()
        compiled = lowered.compile()
        yield compiled
        yield from (str(traced.jaxpr), lowered.as_text(), lowered.as_text(dialect="hlo"))
        yield from (compiled.as_text(), compiled.memory_analysis(), compiled.cost_analysis())

    for row in read_rows(out):
        read = RowProgram.of_record(program(row))
        function = loading.load(read).function
        arguments, others = loading.arguments(read), loading.arguments(read, 1)
        compiled, *_ = columns(function, *arguments)
        results = jax.tree.leaves(compiled(*arguments))
        for at, other in enumerate(others):  # each argument has an effect
            compiled(*arguments[:at], other, *arguments[at + 1 :])
        for result in jax.tree.leaves(function(*arguments)):  # eagerly
            np.asarray(result) if inexact(result) else None
        data = [
            jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
            for leaf in jax.tree.leaves(arguments)
        ]
        is_for_one_device = "mhlo.num_partitions = 1 " in row["stablehlo"]
        if is_for_one_device and "python_cpu_callback" not in row["stablehlo"]:
            reimport.run(row["stablehlo"], data, {})
        if "backward" not in row["directions"]:
            continue
        leaves, tree = jax.tree.flatten(arguments)
        moved = [at for at, leaf in enumerate(leaves) if inexact(leaf)]
        chance = np.random.default_rng(0)

        def at_some(*some: Any) -> Any:
            whole = list(leaves)  # noqa: B023 - called in this iteration
            for at, value in zip(moved, some, strict=True):  # noqa: B023
                whole[at] = value
            returned = jax.tree.leaves(function(*jax.tree.unflatten(tree, whole)))  # noqa: B023
            return [each for each in returned if inexact(each)]

        def gradient(values: Any, cotangents: Any) -> Any:
            return jax.vjp(at_some, *values)[1](cotangents)

        values = [leaves[at] for at in moved]
        cotangents = [jnp.ones_like(each) for each in results if inexact(each)]
        backward, *_ = columns(gradient, values, cotangents)
        jax.block_until_ready(backward(values, cotangents))
        for _ in range(DIRECTIONS):
            tangents = [chance.normal(size=value.shape) for value in values]
            for step in (sign * step for step in STEPS for sign in (1, -1)):
                there = list(leaves)
                for at, value, tangent in zip(moved, values, tangents, strict=True):
                    there[at] = jnp.asarray(np.asarray(value + step * tangent, value.dtype))
                jax.block_until_ready(compiled(*jax.tree.unflatten(tree, there)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools.dataset.processor_time", description=__doc__)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--naive", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.naive:
        naive(options.naive)
        return
    samples = options.samples
    with tempfile.TemporaryDirectory() as folder:
        counts = ["--samples", str(samples), "--seed", str(options.seed), "--jobs", "1"]
        dataset, made = ["-m", "jaxsight", "dataset"], ["--python", sys.executable]
        row = processor_seconds(*dataset, "generate", folder, *counts, *made) / samples
        verified = processor_seconds(*dataset, "verify", folder) / samples
        loop = processor_seconds("-m", "tools.dataset.processor_time", "--naive", folder) / samples
    print("| seconds of processor time | a row | goal |\n|---|--:|--:|")
    print(f"| `jaxsight dataset generate` | {row:.3f} | ≤ {GOAL_ROW} |")
    print(f"| a loop in plain JAX with such checks | {loop:.3f} | |")
    print(f"| the loop's, of `generate`'s | {loop / row:.2f} | ≥ {GOAL_RATIO} |")
    print(f"| `jaxsight dataset verify` | {verified:.3f} | ≤ {GOAL_VERIFIED} |")


if __name__ == "__main__":
    main()
