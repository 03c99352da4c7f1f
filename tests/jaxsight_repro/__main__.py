"""Measure capture and reduction: `python -m tests.jaxsight_repro TABLE [OPTION…]`.

Tables: museum, planted, harnesses, overhead, shrinkray. Each prints its own options with `--help`.
"""

from __future__ import annotations

import importlib
import sys

TABLES = ("museum", "planted", "harnesses", "overhead", "shrinkray")


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in TABLES:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    module = importlib.import_module(f"tests.jaxsight_repro.measuring.{sys.argv[1]}")
    code: int = module.main(sys.argv[2:])
    return code


if __name__ == "__main__":
    sys.exit(main())
