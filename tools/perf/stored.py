"""The table of an earlier run, which `--store` writes, and what is worse than in it by a tenth.

All figures are costs: more is worse. Ratios are compared, as machines differ; without a baseline
the figures themselves. Of these, times are compared with those of the same machine only.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

from tools.perf.measures import Figure, percentile

FILE = Path(__file__).with_name("stored.json")

WORSE = 1.1
"""How many times more is worse: medians of runs on an idle machine differ by less."""

_TIMES = ("ms", "s")


@dataclass(frozen=True, slots=True)
class StoredFigure:
    """A figure as it was measured on `machine`."""

    median: float
    unit: str
    ratio: float | None
    machine: str


def machine() -> str:
    """Return this machine in words, with the versions of Python and JAX."""
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    return f"{system}, Python {platform.python_version()}, JAX {version('jax')}"


def read(file: Path = FILE) -> dict[str, StoredFigure]:
    """Return the stored figures by name; none where the file is not there."""
    if not file.exists():
        return {}
    rows: Mapping[str, Mapping[str, object]] = json.loads(file.read_text(encoding="utf-8"))
    return {name: StoredFigure(**row) for name, row in rows.items()}  # type: ignore[arg-type]


def store(figures: Sequence[Figure], file: Path = FILE) -> None:
    """Store the figures of a run, beside those that it did not measure."""
    rows = read(file) | {figure.name: _of(figure) for figure in figures}
    data = {name: asdict(row) for name, row in rows.items()}
    file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def worse(figures: Sequence[Figure], before: Mapping[str, StoredFigure]) -> dict[str, str]:
    """Return how much worse figures are, by name: `worse: 0.69× was 0.52×`."""
    words = {figure.name: _compared(_of(figure), before.get(figure.name)) for figure in figures}
    return {name: text for name, text in words.items() if text}


def _of(figure: Figure) -> StoredFigure:
    return StoredFigure(percentile(figure.ours, 50), figure.unit, figure.ratio, machine())


def _compared(now: StoredFigure, before: StoredFigure | None) -> str:
    if before is None:
        return ""
    if now.ratio is not None and before.ratio is not None:
        return _words(now.ratio, before.ratio, "×")
    if now.unit in _TIMES and now.machine != before.machine:
        return ""
    return _words(now.median, before.median, f" {now.unit}".rstrip())


def _words(now: float, before: float, unit: str) -> str:
    if now <= before * WORSE:
        return ""
    return f"worse: {now:.3g}{unit} was {before:.3g}{unit}"
