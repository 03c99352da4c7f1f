"""The program after each pass of XLA, as XLA dumps it. Applies to JAX 0.8 to 0.12.

XLA writes a file after each pass that reports a change of the module, before the first pass of
each pipeline, and within a few passes (`xla/hlo/pass/hlo_pass_pipeline.cc`, `xla/service/dump.cc`):
`module_0003.jit_f.0011.simplification.after_algsimp.before_simplify-sorts.txt`.

Private API used: that of `compiler.compat.schedule`, to end a compile before code is generated.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

from jaxsight.compiler.compat import dumps, schedule
from jaxsight.dataset.compat import reimport

_BEFORE = "*.before_optimizations.txt"
_AFTER = re.compile(r".*\.(\d{4})\.([^.]+)\.after_(.+?)(?:\.before_[^.]+)?\.txt")
_START = "pipeline-start"
"""What XLA names a dump before the first pass of a pipeline after."""


@dataclass(frozen=True, slots=True)
class ChangedModule:
    """A program as a pass left it; both names are empty for the one that no pass has changed."""

    pipeline: str
    name: str
    hlo: str


class _Scheduled(Exception):
    """A compile that is wanted no further."""


def compile_with_dumps(stablehlo: str) -> tuple[list[ChangedModule], str]:
    """Compile StableHLO for this machine's CPU, and return each state of the program.

    The first one is that before all passes. A pass that leaves the text as it is, and a pipeline as
    a whole, whose passes have changed the program before, have none.

    Returns:
        The states, and the optimized HLO.

    Raise whatever parsing and compiling raise.
    """
    scheduled: list[bytes] = []

    def look(program: bytes) -> None:
        if schedule.is_final(program):
            scheduled.append(program)
            raise _Scheduled

    watching = schedule.looking(look) if schedule.can_look() else contextlib.nullcontext()
    with dumps.folder() as folder:
        options: dict[str, str | bool] = {
            "xla_dump_to": str(folder),
            "xla_dump_hlo_pass_re": ".*",
            "xla_dump_hlo_as_text": True,
            "xla_backend_optimization_level": "0",  # of LLVM, which comes after these passes
        }
        try:
            with watching:
                hlo = reimport.hlo(reimport.load(stablehlo, options))
        except Exception:
            if not scheduled:
                raise
            hlo = str(schedule.module_of(scheduled[0]).to_string())
        return _states(folder), hlo


def _states(folder: Path) -> list[ChangedModule]:
    (before,) = folder.glob(_BEFORE)
    states = [ChangedModule("", "", before.read_text(encoding="utf-8"))]
    matches = [match for path in folder.iterdir() if (match := _AFTER.fullmatch(path.name))]
    for match in sorted(matches, key=lambda match: int(match[1])):
        text = (folder / match[0]).read_text(encoding="utf-8")
        if match[3] != _START and text != states[-1].hlo:
            states.append(ChangedModule(match[2], match[3], text))
    return states
