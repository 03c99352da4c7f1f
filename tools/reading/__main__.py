"""Print the page *Reading what JAX makes*: `python -m tools.reading [--write]`.

`--write` writes it to `docs/reading.md`. It needs the compiler for an H100
(`jaxsight targets install cuda`).
"""

from __future__ import annotations

import argparse
import asyncio
import os

from jaxsight.trust.policy import VARIABLE
from tools.reading.making import PAGE, page


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    os.environ[VARIABLE] = "always"
    made = asyncio.run(page())
    if given.write:
        PAGE.write_text(made, encoding="utf-8")
    else:
        print(made)


main()
