"""The tables of `docs/estimates.md`: `python -m tests.compiler.estimates_page` writes them anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jaxsight.targets.roofline import Total, total
from jaxsight.targets.target import parse
from tests.compiler.estimate_cases import PUBLISHED, SOURCES, Published, graph
from tests.compiler.measured import cases

PAGE = Path(__file__).parents[2] / "docs" / "estimates.md"
BEGIN, END = "<!-- generated -->\n", "<!-- end -->"


SHORT = 20e-6
"""Seconds below which a program is not counted: latencies make up most of its time."""


def page() -> str:
    """The tables in Markdown: what the model gives for each measured program."""
    rows = [
        "| device | program | measured | estimated | ratio | source |",
        "|---|---|--:|--:|--:|---|",
    ]
    rows += [_row(measured) for measured in PUBLISHED]
    parts = ["", *rows, ""]
    for title, group in (("Programs", "large"), ("Single operations", "calibration")):
        compared = [each for each in comparisons() if each.group == group]
        parts += [f"### {title}", "", *_shares(compared), ""]
        parts += ["| program | measured | estimated | ratio |", "|---|--:|--:|--:|"]
        parts += [each.row for each in compared]
        parts += [""]
    return "\n".join([*parts, ""])


@dataclass(frozen=True, slots=True)
class Comparison:
    """A program that was measured on an H100 beside its estimate."""

    name: str
    measured: float
    estimated: Total | None

    @property
    def group(self) -> str:
        """`large` or `calibration`."""
        return self.name.partition("/")[0]

    @property
    def ratio(self) -> float | None:
        """Measured by estimated, if all of the program has an estimate."""
        if self.estimated is None or self.estimated.is_lower_bound:
            return None
        return self.measured / self.estimated.seconds

    @property
    def row(self) -> str:
        """The row of the table."""
        found = self.estimated
        estimated = "" if found is None else _time(found.seconds)
        if found is not None and found.is_lower_bound:
            estimated = f"{estimated}–{_time(found.at_most)}" if found.at_most else f"≥ {estimated}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        name = self.name.partition("/")[2].replace("/", ": ")
        return f"| {name} | {_time(self.measured)} | {estimated} | {ratio} |"


def comparisons() -> list[Comparison]:
    """All programs that were measured."""
    target = parse(cases.TARGET)
    return [
        Comparison(name, seconds, total(cases.graph(name), target))
        for name, seconds in cases.measured().items()
    ]


def share(compared: list[Comparison], factor: float) -> float:
    """The share of the programs above 20 µs with an estimate that is within a factor."""
    ratios = [each.ratio for each in compared if each.ratio and each.measured > SHORT]
    return sum(1 / factor <= ratio <= factor for ratio in ratios) / len(ratios)


def _shares(compared: list[Comparison]) -> list[str]:
    counted = [each for each in compared if each.ratio and each.measured > SHORT]
    return [
        f"{len(compared)} were measured. Of the {len(counted)} above 20 µs that have an estimate,",
        f"{share(compared, 1.3):.0%} are within a factor of 1.3, {share(compared, 2):.0%} within 2.",
    ]


def _row(measured: Published) -> str:
    target = parse(measured.target)
    found = total(graph(measured.target, measured.case), target)
    assert found is not None
    ratio = measured.seconds / found.seconds
    return (
        f"| {target.title} | {_program(measured.case)} | {_time(measured.seconds)} | "
        f"{_time(found.seconds)} | {ratio:.2f} | {SOURCES[measured.source]} |"
    )


def _program(case: str) -> str:
    if case == "read":
        return "sum of 1 GiB, float32"
    m, n, k = case.split("_")[1:4]
    dtype = "float16" if case.endswith("f16") else "bfloat16"
    return f"{dtype} [{m}, {k}] @ [{k}, {n}]"


def _time(seconds: float) -> str:
    if seconds < 20e-6:
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> None:
    """Write the table into the page."""
    shown = PAGE.read_text(encoding="utf-8")
    begin = shown.index(BEGIN) + len(BEGIN)
    PAGE.write_text(shown[:begin] + page() + shown[shown.index(END) :], encoding="utf-8")


if __name__ == "__main__":
    main()
