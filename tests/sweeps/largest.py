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
from jaxsight.sweeps.memory_search import MOST_COMPILES, MemorySearch
from jaxsight.sweeps.points import (
    LargestSize,
    Sizes,
    SweepPoint,
    SweptSize,
    point_of,
    thinned,
)
from tests.sweeps.programs import PROGRAMS

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


def search(name: str, target: str) -> LargestSize:
    """The largest `B` of a program."""
    function, shapes = PROGRAMS[name]
    compiled = jaxsight.kernels(function, target=target)

    def point(sizes: Sizes) -> SweepPoint:
        try:
            found = compiled(*shapes(sizes["B"]))
        except Exception as error:  # noqa: BLE001 - of the program, with this size
            return SweepPoint(sizes, str(error))
        return point_of(sizes, found.with_temporaries)

    swept = SweptSize("B", tuple(thinned(range(16, 65))))
    search = MemorySearch.of(swept, [point({"B": size}) for size in swept.values], MEMORY)
    while (sizes := search.following()) is not None:
        search.take(point(sizes))
    return search.largest()


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
