"""The table of `docs/estimates.md`: `python -m tests.compiler.estimates_page` writes it anew."""

from __future__ import annotations

from pathlib import Path

from jaxsight.targets.roofline import total
from jaxsight.targets.target import parse
from tests.compiler.estimate_cases import PUBLISHED, SOURCES, Published, graph

PAGE = Path(__file__).parents[2] / "docs" / "estimates.md"
BEGIN, END = "<!-- generated -->\n", "<!-- end -->"


def page() -> str:
    """The table in Markdown: what the model gives for each published measurement."""
    rows = [
        "| device | program | measured | estimated | ratio | source |",
        "|---|---|--:|--:|--:|---|",
    ]
    rows += [_row(measured) for measured in PUBLISHED]
    return "\n".join(["", *rows, "", ""])


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
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> None:
    """Write the table into the page."""
    shown = PAGE.read_text(encoding="utf-8")
    begin = shown.index(BEGIN) + len(BEGIN)
    PAGE.write_text(shown[:begin] + page() + shown[shown.index(END) :], encoding="utf-8")


if __name__ == "__main__":
    main()
