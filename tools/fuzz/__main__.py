"""`python -m tools.fuzz SUBJECT`: more cases than the suite runs, and what each failure came of."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tools.fuzz.subjects import SUBJECTS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("subject", nargs="?", choices=[*SUBJECTS, "all"], default="all")
    parser.add_argument("--count", type=int, default=200, help="cases of each subject")
    parser.add_argument("--seed", type=int, default=0, help="what cases are drawn from")
    options = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    logging.getLogger("tools.fuzz").setLevel(logging.WARNING)  # failures, as they come
    failed = False
    for name in SUBJECTS if options.subject == "all" else [options.subject]:
        begin = time.perf_counter()
        report = SUBJECTS[name](options.count, options.seed)
        print(f"{name}: {report} [{time.perf_counter() - begin:.0f} s]", flush=True)
        failed = failed or bool(report.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
