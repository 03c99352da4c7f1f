"""Run checks, all of them by default, and print what offends."""

from __future__ import annotations

import argparse
import gc
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tools.lint.checkout import Checkout, Offender

ROOT = Path(__file__).parents[2]
Check = Callable[[Checkout], Iterable[Offender]]


def checks() -> dict[str, Check]:
    """Return the checks by the names of their modules."""
    names = sorted(module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = {
        name: importlib.import_module(f"tools.lint.{name}") for name in names if name != "__main__"
    }
    return {
        name: module.offenders for name, module in modules.items() if hasattr(module, "offenders")
    }


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Run the checks that are named, and return the exit status."""
    known = checks()
    parser = argparse.ArgumentParser(prog="python -m tools.lint", description=__doc__)
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"any of {', '.join(known)}")
    names = parser.parse_args(arguments).checks or [*known]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown check: {', '.join(unknown)}; known are {', '.join(known)}")
    checkout = Checkout(root)
    count = 0
    gc.disable()  # looking for garbage among syntax trees takes three times as long as parsing
    try:
        for name in names:
            for offender in sorted(known[name](checkout)):
                print(f"{offender} [{name}]")
                count += 1
    finally:
        gc.enable()
    print(f"{len(names)} checks, {f'{count} offenders' if count else 'no offenders'}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
