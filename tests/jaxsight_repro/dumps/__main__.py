"""Which dumps of public reports become running JAX source: `python -m tests.jaxsight_repro.dumps [NAME…]`.

A dump counts as running if the standalone file that `jaxsight repro from-hlo` writes runs with JAX
alone. Its results are compared with those of the dump itself, compiled and run by XLA without
jaxsight's reading of it; some dumps are of programs that this machine's XLA cannot run.
"""

from __future__ import annotations

import sys

from tests.jaxsight_repro.dumps.outcomes import DUMPS, outcome


def main() -> int:
    names = sys.argv[1:]
    chosen = [path for path in DUMPS if not names or path.stem in names]
    outcomes = [(path, outcome(path)) for path in chosen]
    print("| dump | running source | values against XLA's own run |")
    print("| --- | --- | --- |")
    for path, found in outcomes:
        print(f"| {path.name} | {found.source} | {found.values} |")
    running = sum(found.runs for _, found in outcomes)
    equal = sum(found.values.startswith("equal") for _, found in outcomes)
    print(f"\n{running} of {len(chosen)} run, {equal} with equal values")
    return 0


if __name__ == "__main__":
    sys.exit(main())
