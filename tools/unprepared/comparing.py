"""Shown inputs beside those of a real run."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from tools.unprepared import real_run
from tools.unprepared.opened import ShownFunction

Verdict = Literal["equal", "rank equal", "wrong", "not compared"]
RealCalls = Mapping[str, Sequence[Mapping[str, Sequence[str]]]]
_ARRAY = re.compile(r"([a-z]+\d*(?:<\w+>)?)\[([^\]]*)\]")
_PATIENCE = 30.0
"""Seconds beyond those of a program until its process is ended."""


def real_calls(python: str, program: Path, file: Path, root: Path, seconds: float) -> RealCalls:
    """Return what a program calls the functions of a file with, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "calls.json")
        command = [python, real_run.__file__, program, file, root, out, seconds]
        try:
            subprocess.run(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=seconds + _PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {}
        if not out.is_file():
            return {}
        calls: RealCalls = json.loads(out.read_text(encoding="utf-8"))["calls"]
        return calls


def verdict(shown: ShownFunction, calls: RealCalls) -> Verdict:
    """Compare the types of a function's parameters with those of its calls, the best that fits."""
    real = calls.get(shown.function.name, ())
    types = {name: _ARRAY.findall(text) for name, text in shown.inputs.items() if "…" not in text}
    # What a nested function captures is shown as a parameter; a docstring has calls of its own.
    types = {name: found for name, found in types.items() if found and real and name in real[0]}
    if not types or shown.origin == "written":
        return "not compared"
    if any(all(_written(types[n]) == Counter(call.get(n, ())) for n in types) for call in real):
        return "equal"
    if any(all(_ranks(types[n]) == _real_ranks(call.get(n, ())) for n in types) for call in real):
        return "rank equal"
    return "wrong"


def _written(types: Sequence[tuple[str, str]]) -> Counter[str]:
    return Counter(f"{dtype}[{dims.replace(' ', '')}]" for dtype, dims in types)


def _ranks(types: Sequence[tuple[str, str]]) -> Counter[int]:
    return Counter(len(dims.split(",")) if dims.strip() else 0 for _, dims in types)


def _real_ranks(types: Sequence[str]) -> Counter[int]:
    return _ranks([(dtype, dims) for each in types for dtype, dims in _ARRAY.findall(each)])
