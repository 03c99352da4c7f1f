"""Compare transfers in programs that offload: `python -m tests.compiler.offloading [TARGET…]`.

Each program is compiled for each target, by default `cuda:h100`, and what jaxsight says is held
against a count from memory spaces. `--record FILE` keeps the HLO, which is the material of
`tests/compiler/test_offloading.py`.
"""

from __future__ import annotations

import argparse
import re
import zipfile
from pathlib import Path

import jaxsight
from tests.compiler.offloading import compare
from tests.compiler.offloading.programs import PROGRAMS

_METADATA = re.compile(r"(?:source_file|stack_frame_id|source_line)=(?:\"[^\"]*\"|\d+) ?")


def main() -> None:
    """Compile, print the transfers and the differences, and exit with 1 when there are some."""
    parser = argparse.ArgumentParser(prog="python -m tests.compiler.offloading")
    parser.add_argument("targets", nargs="*", default=["cuda:h100"])
    parser.add_argument("--record", type=Path)
    asked = parser.parse_args()
    kept: dict[str, str] = {}
    bad = 0
    for target in asked.targets:
        for name, program in PROGRAMS.items():
            kernels = jaxsight.kernels(program.function, target=target)(*program.arguments)
            kept[f"{target}/{name}.txt"] = _METADATA.sub("", kernels.hlo)
            problems = compare.with_memory_spaces(kernels.hlo, kernels.graph)
            bad += bool(problems)
            moved = ", ".join(f"{t.direction} {t.bytes:,} B" for t in kernels.graph.host_transfers)
            print(f"{target} {name}: {moved}", *problems, sep="\n    ", flush=True)
    if asked.record:
        with zipfile.ZipFile(asked.record, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for name, text in kept.items():
                archive.writestr(name, text)
    print(f"{len(kept)} programs: {bad} differ")
    raise SystemExit(bool(bad))


if __name__ == "__main__":
    main()
