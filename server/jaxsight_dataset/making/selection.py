"""Chooses which programs become rows: each once, and nothing that two splits share."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field

from jaxsight_dataset.near_duplicates import NearDuplicates
from jaxsight_dataset.program import Record

SPLITS = ("train", "validation", "test")


def split_of(template: str) -> str:
    """Return the split of all programs of a template: eight of ten are for training."""
    part = int.from_bytes(hashlib.sha256(template.encode()).digest()[:4], "big") % 10
    return SPLITS[max(part - 7, 0)]


@dataclass(slots=True)
class Selection:
    """The programs that were chosen, of those that were surveyed in the order of their numbers.

    Attributes:
        chosen: the numbers of programs, with their splits.
        surveyed: how many programs were looked at.
        rejected: how many were not chosen, by cause.
    """

    chosen: list[tuple[int, str]] = field(default_factory=list)
    surveyed: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    _programs: set[str] = field(default_factory=set)
    _near: NearDuplicates = field(default_factory=NearDuplicates)
    _structures: dict[str, str] = field(default_factory=dict)

    @property
    def structures(self) -> int:
        """The number of different structures among the chosen programs."""
        return len(self._structures)

    def add(self, number: int, record: Record) -> None:
        """Choose a surveyed program, or count why not."""
        self.surveyed += 1
        if "rejected" in record:
            self.rejected[record["rejected"]] += 1
            return
        if record["program"] in self._programs:
            self.rejected["duplicate"] += 1
            return
        split = split_of(record["template"])
        if self._structures.get(record["structure"], split) != split:
            self.rejected["structure of another split"] += 1
            return
        if self._near.add(record["minhash"]):
            self.rejected["near duplicate"] += 1
            return
        self._structures[record["structure"]] = split
        self._programs.add(record["program"])
        self.chosen.append((number, split))
