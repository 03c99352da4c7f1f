"""Sweeps in rows, in lines below a table, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import get_args

from inline_snapshot import snapshot

from jaxsight.sweeps import table
from jaxsight.sweeps.points import LargestSize, Sweep, SweepPoint, SweptSize
from tests.sweeps.examples import KIB, point, sweep_of

GIB = 2**30


def test_every_figure_has_a_name_for_options() -> None:
    assert get_args(table.FigureName) == tuple(table.FIGURES)


def text(sweep: Sweep) -> str:
    columns = ["n", *(figure.column for figure in table.columns(sweep))]
    rows = [" | ".join(row) for row in (columns, *table.rows(sweep))]
    return "\n".join([*rows, *table.remarks(sweep)])


def test_a_row_for_each_size_and_where_xla_changes_its_mind() -> None:
    assert text(sweep_of(lambda n: n * KIB)) == snapshot("""\
n | kernels | temp | arguments | memory | in + out | ≈ time
1 | 2 | 1 KiB | 4 B | 1 KiB | 12 B | 1.0 µs
2 | 2 | 2 KiB | 8 B | 2 KiB | 24 B | 2.0 µs
3 | 2 | 3 KiB | 12 B | 3 KiB | 36 B | 3.0 µs
4 | 3 | 4 KiB | 16 B | 4 KiB | 48 B | 4.0 µs
n=4: XLA makes 3 kernels of the same program, 2 with n=3: + loop fusion\
""")


def test_a_point_that_was_not_compiled_says_why() -> None:
    sweep = sweep_of(lambda n: n * KIB)
    failed = SweepPoint({"n": 5}, "cannot be traced: TypeError: n must be even")
    assert text(replace(sweep, points=(sweep.points[0], failed))) == snapshot("""\
n | kernels | temp | arguments | memory | in + out | ≈ time
1 | 2 | 1 KiB | 4 B | 1 KiB | 12 B | 1.0 µs
5 | – | – | – | – | – | –
n=5: cannot be traced: TypeError: n must be even\
""")


def test_what_the_device_decides_is_a_range() -> None:
    sweep = sweep_of(lambda n: n * KIB)
    open_ended = replace(
        sweep.points[0],
        kernels_at_most=4,
        launches_at_most=None,
        temp_bytes_at_most=32 * KIB,
        estimate_is_lower_bound=True,
    )
    unknown = replace(sweep.points[1], temp_bytes_at_most=None, estimate_seconds=None)
    assert text(replace(sweep, points=(open_ended, unknown))) == snapshot("""\
n | kernels | temp | arguments | memory | in + out | ≈ time
1 | 2–4 | 1 KiB–32 KiB | 4 B | 1 KiB | 12 B | ≥ 1.0 µs
2 | 2 | ≥ 2 KiB | 8 B | 2 KiB | 24 B | ?\
""")


def test_a_function_that_differs_by_itself_is_no_change_of_xla() -> None:
    points = tuple(point(n, KIB, kernels=n + 1, program=f"{n} muls") for n in (1, 2, 3))
    sweep = Sweep("loop", "cpu", (SweptSize("n", (1, 2, 3)),), points)
    assert [*table.remarks(sweep)] == snapshot(
        ["the function itself differs with the sizes: it has other equations"]
    )


def test_the_largest_size_in_words() -> None:
    exact = LargestSize("B", 5242, 80 * GIB, 79 * GIB, 5243, {"L": 128}, 4, is_exact=True)
    lines = [
        exact,
        replace(exact, is_exact=False, too_large=5300, others={}),
        replace(exact, is_exact=False, too_large=None, others={}, reason="B=6,000: it died"),
        LargestSize("B", None, 80 * GIB, too_large=1),
        LargestSize("B", 8, 80 * GIB, 8, reason="its memory does not grow with B"),
    ]
    assert "\n".join(map(table.largest_line, lines)) == snapshot("""\
largest B that fits in 80 GiB with L=128: 5,242 (needs 79 GiB)
largest B that fits in 80 GiB: at least 5,242 (needs 79 GiB), less than 5,300
largest B that fits in 80 GiB: at least 5,242 (needs 79 GiB); B=6,000: it died
largest B that fits in 80 GiB: none
largest B that fits in 80 GiB: at least 8 (needs 8 B); its memory does not grow with B\
""")


def test_json_has_points_changes_and_the_largest_size() -> None:
    largest = LargestSize("n", 9, 80 * GIB, 79 * GIB, 10, {}, 3, is_exact=True)
    record = table.record(sweep_of(lambda n: n * KIB, (3, 4), largest=(largest,)))
    assert json.loads(json.dumps(record)) == snapshot(
        {
            "function": "loop",
            "target": "cuda:h100",
            "swept": {"n": [3, 4]},
            "points": [
                {
                    "sizes": {"n": 3},
                    "problem": None,
                    "kernel_count": 2,
                    "kernels_at_most": 2,
                    "launch_count": 2,
                    "launches_at_most": 2,
                    "temp_bytes": 3072,
                    "temp_bytes_at_most": 3072,
                    "argument_bytes": 12,
                    "output_bytes": 12,
                    "aliased_bytes": 0,
                    "traffic_bytes": 36,
                    "moved_bytes": 0,
                    "estimate_seconds": 3e-06,
                    "estimate_is_lower_bound": False,
                    "wall_seconds": None,
                    "needed_bytes": 3096,
                    "kinds": ["loop fusion", "cuBLAS matmul"],
                },
                {
                    "sizes": {"n": 4},
                    "problem": None,
                    "kernel_count": 3,
                    "kernels_at_most": 3,
                    "launch_count": 3,
                    "launches_at_most": 3,
                    "temp_bytes": 4096,
                    "temp_bytes_at_most": 4096,
                    "argument_bytes": 16,
                    "output_bytes": 16,
                    "aliased_bytes": 0,
                    "traffic_bytes": 48,
                    "moved_bytes": 0,
                    "estimate_seconds": 4e-06,
                    "estimate_is_lower_bound": False,
                    "wall_seconds": None,
                    "needed_bytes": 4128,
                    "kinds": ["loop fusion", "loop fusion", "cuBLAS matmul"],
                },
            ],
            "changes": [
                {"sizes": {"n": 4}, "before": {"n": 3}, "new": ["loop fusion"], "gone": []}
            ],
            "largest": [
                {
                    "sizes": {"n": 9},
                    "needed_bytes": 84825604096,
                    "memory_bytes": 85899345920,
                    "too_large": 10,
                    "is_exact": True,
                    "compiles": 3,
                    "reason": None,
                }
            ],
        }
    )


def test_csv_has_a_row_for_each_point_of_all_functions() -> None:
    sweeps = [sweep_of(lambda n: n * KIB), sweep_of(lambda n: KIB, function="a,b")]
    rows = [*csv.DictReader(io.StringIO(table.as_csv(sweeps)))]
    assert [(row["function"], row["n"], row["temp_bytes"]) for row in rows] == [
        *(("loop", str(n), str(n * KIB)) for n in (1, 2, 3, 4)),
        *(("a,b", str(n), str(KIB)) for n in (1, 2, 3, 4)),
    ]
    assert rows[0]["needed_bytes"] == str(KIB + 8)
    assert rows[0]["problem"] == ""
