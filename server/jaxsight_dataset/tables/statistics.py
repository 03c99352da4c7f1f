"""Statistics of a dataset, computed from its tables in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from jaxsight_dataset.near_duplicates import NearDuplicates
from jaxsight_dataset.program import Record
from jaxsight_dataset.schema import NOT_COMPARED
from jaxsight_dataset.tables.manifest import Manifest

_COLUMNS = (
    *("split", "category", "difficulty", "template", "input_dtypes", "primitives"),
    *("equation_count", "directions", "transformations", "targets", "canonical_digest"),
    *("structure_digest", "minhash", "validation", "provenance"),
)

_BINS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""The least number of equations of each bar of the histogram: most programs are small."""

_KERNEL_BINS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 32)

COUNTED = (
    *("split", "category", "difficulty", "dtype", "primitive", "transformation"),
    *("equations", "direction", "licence", "package"),
)
"""What rows are counted by; mined ones also by `package`."""


@dataclass(slots=True)
class Statistics:
    """What a dataset has.

    Attributes:
        rows: how many rows there are.
        counts: how many rows have each value, for each of `COUNTED`; most frequent first where
            values have no order.
        kernels: for each target, how many rows have so many kernels.
        checks: for each check, how many rows passed it, and so on.
        programs: how many canonical digests there are.
        structures: how many structure digests there are.
        templates: how many templates there are.
        near_duplicates: how many rows resemble an earlier one.
        disagreements: how many programs have results that differ.
        surveyed: how many programs were surveyed.
        rejected: how many of them are no rows, by cause.
    """

    rows: int = 0
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    kernels: dict[str, dict[str, int]] = field(default_factory=dict)
    checks: dict[str, dict[str, int]] = field(default_factory=dict)
    programs: int = 0
    structures: int = 0
    templates: int = 0
    near_duplicates: int = 0
    disagreements: int = 0
    surveyed: int = 0
    rejected: dict[str, int] = field(default_factory=dict)

    def share(self, count: int) -> str:
        """Return a number of rows as a percentage of all rows."""
        return f"{100 * count / self.rows:.1f} %" if self.rows else "–"


class _Counting:
    def __init__(self) -> None:
        self.rows = 0
        self.counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
        self.kernels: dict[str, Counter[str]] = {}
        self.checks: dict[str, Counter[str]] = {}
        self.digests: dict[str, set[str]] = {
            name: set() for name in ("canonical_digest", "structure_digest", "template")
        }
        self.near = NearDuplicates()

    def add(self, row: Record) -> None:
        self.rows += 1
        counts = self.counts
        for name in ("split", "category", "difficulty"):
            counts[name][row[name]] += 1
        counts["dtype"].update(set(row["input_dtypes"]))
        counts["primitive"].update(row["primitives"])
        counts["transformation"].update(row["transformations"])
        counts["direction"].update(row["directions"])
        counts["equations"][_bin(row["equation_count"], _BINS)] += 1
        counts["licence"][row["provenance"]["licence"]] += 1
        if row["provenance"]["path"]:
            counts["package"][row["provenance"]["package"]] += 1
        for target in row["targets"]:
            if target["kernel_count"] is None:
                continue
            kernels = self.kernels.setdefault(target["target"], Counter())
            kernels[_bin(target["kernel_count"], _KERNEL_BINS)] += 1
        for name, outcome in row["validation"].items():
            self.checks.setdefault(name, Counter())[_outcome(outcome)] += 1
        for name, digests in self.digests.items():
            digests.add(row[name])
        self.near.add(row["minhash"])


def compute(out: Path, manifest: Manifest) -> Statistics:
    """Return the statistics of a dataset.

    Raises:
        UnreadableFile: a file cannot be read.
        MissingLibrary: the format requires pyarrow.
    """
    counting = _Counting()
    for _, row in manifest.read_rows(out, "rows", _COLUMNS):
        counting.add(row)
    made: Record = manifest.made
    counts = {name: _by_frequency(counter) for name, counter in counting.counts.items()}
    counts["equations"] = _in_order(counting.counts["equations"], _BINS)
    return Statistics(
        rows=counting.rows,
        counts=counts,
        kernels={
            name: _in_order(counter, _KERNEL_BINS)
            for name, counter in sorted(counting.kernels.items())
        },
        checks={name: _by_frequency(counter) for name, counter in counting.checks.items()},
        programs=len(counting.digests["canonical_digest"]),
        structures=len(counting.digests["structure_digest"]),
        templates=len(counting.digests["template"]),
        near_duplicates=counting.near.count,
        disagreements=sum(manifest.splits("disagreements").values()),
        surveyed=int(made.get("surveyed", 0)),
        rejected=_by_frequency(made.get("rejected", {})),
    )


def _outcome(check: str | None) -> str:
    if check is None:
        return "not run"
    return check.partition(":")[0] if check.startswith((NOT_COMPARED, "differs")) else check


def _bin(number: int, starts: tuple[int, ...]) -> str:
    at = max((at for at, start in enumerate(starts) if start <= number), default=0)
    return _bin_names(starts)[at]


def _bin_names(starts: tuple[int, ...]) -> list[str]:
    ends = [f"–{end - 1}" if end - 1 > start else "" for start, end in pairwise(starts)]
    return [f"{start}{end}" for start, end in zip(starts, [*ends, " or more"], strict=True)]


def _in_order(counter: Mapping[str, int], starts: tuple[int, ...]) -> dict[str, int]:
    return {name: counter[name] for name in _bin_names(starts) if name in counter}


def _by_frequency(counter: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))
