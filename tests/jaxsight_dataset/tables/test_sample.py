"""The sample in `examples/dataset`: it is sound, and the page on datasets has its figures."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from statistics import median

from jaxsight_dataset import read_rows
from jaxsight_dataset.tables import manifest, verification

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "examples" / "dataset"


def table() -> str:
    """Return the figures of the sample as a table of Markdown: medians for each category."""
    columns = ["category", "equation_count", "targets"]
    figures = defaultdict(list)
    for row in read_rows(SAMPLE, columns=columns):
        kernels = {target["target"]: target["kernel_count"] for target in row["targets"]}
        counts = row["equation_count"], kernels["cpu"], kernels["cuda:h100"]
        for name in (row["category"], "all"):
            figures[name].append(counts)
    lines = [
        "| category | rows | equations | kernels, CPU | kernels, H100 |",
        "|---|--:|--:|--:|--:|",
    ]
    for name in sorted(figures, key=lambda name: (name == "all", name)):
        equations, cpu, h100 = zip(*figures[name], strict=True)
        built = [count for count in h100 if count is not None]
        medians = " | ".join(
            f"{median(counts):g}" if counts else "–" for counts in (equations, cpu, built)
        )
        lines.append(f"| {name} | {len(equations)} | {medians} |")
    return "\n".join(lines)


def test_the_sample_is_sound() -> None:
    verified = verification.verify(SAMPLE, manifest.read(SAMPLE))
    assert verified.is_sound, verified.problems
    assert verified.rows == 300


def test_the_page_has_the_figures_of_the_sample() -> None:
    assert table() in (ROOT / "docs" / "dataset" / "dataset.md").read_text(encoding="utf-8")
