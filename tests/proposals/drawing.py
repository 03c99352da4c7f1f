"""Draw functions of installed libraries by lot, before anyone has looked at them.

`python -m tests.proposals.drawing SITE --seed 31 blind LIBRARY…` writes the list `blind.txt`: public
functions and `__call__` methods that `choosing` admits, and that are in no other list. The same
number of each library, as long as it has any.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from tests.proposals.choosing import Chosen, eligible

_FOLDER = Path(__file__).parents[1] / "corpora" / "proposals"


def drawn(
    packages: Path, libraries: list[str], count: int, seed: int, taken: set[str]
) -> list[Chosen]:
    """Return `count` functions of libraries, the same number of each where there are enough."""
    lot = random.Random(seed)
    heaps: list[list[Chosen]] = []
    for library in libraries:
        heap = [f for f in eligible(packages, library, calls=True) if str(f) not in taken]
        lot.shuffle(heap)
        heaps.append(heap)
    functions: list[Chosen] = []
    while len(functions) < count and any(heaps):
        functions += [heap.pop() for heap in heaps if heap]
    return sorted(functions[:count], key=str)


def main() -> None:
    """Write a list."""
    parser = argparse.ArgumentParser(prog="python -m tests.proposals.drawing", description=__doc__)
    parser.add_argument("packages", type=Path, help="the folder of the installed packages")
    parser.add_argument("list", help="the name of the list")
    parser.add_argument("libraries", nargs="+")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=60)
    options = parser.parse_args()
    taken = {
        line
        for file in _FOLDER.glob("*.txt")
        if file.stem != options.list
        for line in file.read_text(encoding="utf-8").splitlines()
    }
    functions = drawn(options.packages, options.libraries, options.count, options.seed, taken)
    text = "".join(f"{function}\n" for function in functions)
    (_FOLDER / f"{options.list}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
