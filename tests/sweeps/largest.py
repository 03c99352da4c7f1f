"""Hold searches for the largest size against the compiler: `python -m tests.sweeps.largest [TARGET] [NAME…]`.

Each program of `programs.py` is searched with a memory of 2 GiB. Then it is compiled with the size that
was found and with the next one: for this machine's CPU by JAX alone, for other targets completely. The
first must fit in the memory by XLA's own analysis, and the second must not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import jax

import jaxsight
from jaxsight.sweeps.memory_search import MOST_COMPILES
from jaxsight.sweeps.points import LargestSize
from tests.sweeps.programs import PROGRAMS, Shapes

MEMORY = 2 * 2**30


def needed(function: Callable[..., object], arguments: tuple[object, ...], target: str) -> int:
    """The compiler's sum of arguments, results and temporaries; results in donated buffers count once."""
    if target == "cpu":
        jitted = function if hasattr(function, "lower") else jax.jit(function)
        sizes = jitted.lower(*arguments).compile().memory_analysis()
        held = sizes.argument_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes
        return int(held + sizes.temp_size_in_bytes)
    memory = jaxsight.kernels(function, target=target)(*arguments).memory
    return memory.arguments + memory.outputs - max(memory.aliased, 0) + memory.temporaries


def argument(shapes: Shapes, at: int) -> Callable[[int], object]:
    """One argument as a function of `B`."""
    return lambda B: shapes(B)[at]


def search(name: str, target: str) -> LargestSize:
    """The largest `B` of a program."""
    function, shapes = PROGRAMS[name]
    arguments = [argument(shapes, at) for at in range(len(shapes(1)))]
    swept = jaxsight.sweep(function, target=target, memory=MEMORY, B=range(16, 65))
    return swept(*arguments).largest[0]


def verdict(name: str, found: LargestSize, target: str) -> str:
    """What is wrong with the result of a search; empty if nothing is."""
    function, shapes = PROGRAMS[name]
    if found.size is None or not found.is_exact:
        return f"not exact: {found}"
    if found.compiles > MOST_COMPILES:
        return f"{found.compiles} compiles"
    if (less := needed(function, shapes(found.size), target)) > MEMORY:
        return f"{found.size} needs {less:,}"
    if (more := needed(function, shapes(found.size + 1), target)) <= MEMORY:
        return f"{found.size + 1} fits with {more:,}"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sweeps.largest", description=__doc__)
    parser.add_argument("target", nargs="?", default="cpu")
    parser.add_argument("names", nargs="*", help="programs, by default all")
    options = parser.parse_args()
    right = 0
    names = options.names or [*PROGRAMS]
    for name in names:
        found = search(name, options.target)
        wrong = verdict(name, found, options.target)
        right += not wrong
        print(f"{name:<18}{found.size or 0:>12,}{found.compiles:>4} compiles  {wrong}", flush=True)
    print(f"{right} of {len(names)} as the compiler says")
    return 0 if right == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
