"""The figures of corpora, and those of an earlier run: `tests/unprepared.json`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.unprepared.comparing import Verdict
from tools.unprepared.opened import ShownFunction

STORED = Path(__file__).parents[2] / "tests" / "unprepared.json"
_LESS = 0.1
"""By how much a share may be below the stored one: two runs on a busy machine differ by less."""
_MORE_WRONG = 1
"""Exact inputs by which a run may have more wrong ones, as real runs end after a time."""
NO_CAUSE = "no example inputs"
"""What a function says that shows nothing and of which no cause is known."""


@dataclass(frozen=True)
class CorpusFigures:
    """What functions of a corpus show."""

    files: int = 0
    functions: int = 0
    shown: int = 0
    without_cause: int = 0
    """Those that show nothing, and say nothing or only that there are no inputs."""
    origins: dict[str, int] = field(default_factory=dict[str, int])
    compared: dict[str, int] = field(default_factory=dict[str, int])
    """By verdict, of exact inputs and of assumed ones: `exact equal`."""

    @property
    def share(self) -> float:
        """The share of the functions that show something."""
        return self.shown / max(self.functions, 1)

    def line(self) -> str:
        """Return the figures in words."""
        by_origin = ", ".join(f"{number} {kind}" for kind, number in self.origins.items())
        verdicts = ", ".join(f"{number} {kind}" for kind, number in self.compared.items())
        silent = self.functions - self.shown
        return (
            f"{self.shown} of {self.functions} functions of {self.files} files shown "
            f"({100 * self.share:.0f} %); {self.without_cause} of {silent} others without a cause; "
            f"inputs: {by_origin or 'none'}; real run: {verdicts or 'none'}"
        )


Row = tuple[str, ShownFunction, Verdict]
"""A file, a function of it, and how it compares with a real run."""


def figures(rows: Iterable[Row]) -> CorpusFigures:
    """Return the figures of functions."""
    every = [*rows]
    origins, compared = Counter[str](), Counter[str]()
    for _, each, verdict in every:
        if each.is_shown and each.origin:
            origins[each.origin] += 1
            if verdict != "not compared":
                compared[f"{'assumed' if each.origin == 'assumed' else 'exact'} {verdict}"] += 1
    return CorpusFigures(
        len({file for file, _, _ in every}),
        len(every),
        sum(each.is_shown for _, each, _ in every),
        sum(not each.is_shown and each.reason in ("", NO_CAUSE) for _, each, _ in every),
        dict(sorted(origins.items())),
        dict(sorted(compared.items())),
    )


def reasons(rows: Iterable[Row]) -> Counter[str]:
    """Return why functions show nothing, names left out."""
    silent = (each for _, each, _ in rows if not each.is_shown)
    return Counter(re.sub(r"`[^`]*`", "`…`", each.reason) or "(says nothing)" for each in silent)


def read(file: Path = STORED) -> dict[str, CorpusFigures]:
    """Return the stored figures by corpus."""
    if not file.is_file():
        return {}
    rows = json.loads(file.read_text(encoding="utf-8"))
    return {name: CorpusFigures(**row) for name, row in rows.items()}


def store(found: dict[str, CorpusFigures], file: Path = STORED) -> None:
    """Store figures, beside those of corpora that were not measured."""
    rows = {name: asdict(each) for name, each in sorted((read(file) | found).items())}
    body = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    file.write_text(f"{{\n{body}\n}}\n", encoding="utf-8")


def worse(now: CorpusFigures, before: CorpusFigures) -> Iterator[str]:
    """Yield in what figures are clearly worse than the stored ones."""
    if now.share < before.share - _LESS:
        yield f"shown: {100 * now.share:.0f} %, was {100 * before.share:.0f} %"
    wrong, had = (each.compared.get("exact wrong", 0) for each in (now, before))
    if wrong > had + _MORE_WRONG:
        yield f"wrong exact inputs: {wrong}, were {had}"
