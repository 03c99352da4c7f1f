"""The benchmark says what is worse than in its stored table by a tenth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.perf.measures import Figure, table
from tools.perf.stored import StoredFigure, machine, read, store, worse

HERE = machine()


def hover(ours: float, baseline: float = 1.0) -> Figure:
    return Figure("hover", "ms", [ours], [baseline], "bare server")


def memory(ours: float, unit: str = "MiB") -> Figure:
    return Figure("memory", unit, [ours])


@pytest.mark.parametrize(
    ("now", "remark"),
    [
        (hover(0.69), "worse: 0.69× was 0.52×"),
        (hover(0.56), ""),
        (hover(0.1), ""),
        # Twice the time on a machine that takes twice the time for the baseline, too.
        (hover(1.04, 2.0), ""),
    ],
)
def test_ratios_are_compared_where_there_are_any(now: Figure, remark: str) -> None:
    before = {"hover": StoredFigure(0.52, "ms", 0.52, "another machine")}
    assert worse([now], before).get("hover", "") == remark


@pytest.mark.parametrize(
    ("now", "machine", "remark"),
    [
        (memory(73.6), "another machine", "worse: 73.6 MiB was 62.7 MiB"),
        (memory(68.0), "another machine", ""),
        (memory(73.6, "ms"), HERE, "worse: 73.6 ms was 62.7 ms"),
        (memory(73.6, "ms"), "another machine", ""),
    ],
)
def test_times_without_a_baseline_are_compared_on_the_same_machine(
    now: Figure, machine: str, remark: str
) -> None:
    before = {"memory": StoredFigure(62.7, now.unit, None, machine)}
    assert worse([now], before).get("memory", "") == remark


def test_what_never_happened_is_worse_once_it_does() -> None:
    before = {"compiles": StoredFigure(0, "", None, "another machine")}
    assert worse([Figure("compiles", "", [0])], before) == {}
    assert worse([Figure("compiles", "", [1])], before) == {"compiles": "worse: 1 was 0"}


def test_a_stored_run_keeps_what_it_did_not_measure(tmp_path: Path) -> None:
    file = tmp_path / "stored.json"
    assert read(file) == {}
    store([hover(0.5), memory(60)], file)
    store([hover(0.6)], file)
    assert read(file) == {
        "hover": StoredFigure(0.6, "ms", 0.6, HERE),
        "memory": StoredFigure(60, "MiB", None, HERE),
    }
    assert worse([hover(0.7), memory(60)], read(file)) == {"hover": "worse: 0.7× was 0.6×"}


def test_the_table_has_the_remark_in_its_row() -> None:
    rows = table([hover(0.69), replace(hover(1), name="other")], {"hover": "worse: …"}).split("\n")
    assert [row.split("|")[-2].strip() for row in rows[2:]] == ["worse: …", ""]
