"""What differs between facts is told with its cause, what explains the others first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jaxsight.locks.differences import Figure, differences
from jaxsight.locks.facts import (
    CollectiveFact,
    ConstantFact,
    DtypeFact,
    KernelFact,
    LoopFact,
    ProgramFacts,
)
from jaxsight.locks.notation import LockedFunction, Tolerance, line_of, read_line

BEFORE = ProgramFacts(
    kernels=(
        KernelFact("matmul", 4096, line=5),
        KernelFact("reduction", 64, line=6),
        KernelFact("output", 4096, line=7),
    ),
    launches=3,
    temporaries=4096,
    arguments=8192,
    outputs=4096,
    traffic=2**14,
    collectives=(CollectiveFact("all-reduce", 64, ("data",), line=6),),
    constants=(ConstantFact(1024, line=5),),
    loops=(LoopFact(20, line=6),),
    equations=10,
    dtypes=(DtypeFact("f32", 4096),),
    inputs="f32[8,128]",
    results="f32[8]",
    program="0123456789ab",
)


def found(after: ProgramFacts, **tolerances: str) -> list[str]:
    """Return what differs from a lock of `BEFORE`, which knows no lines."""
    _, locked = read_line(line_of("a.py:f", LockedFunction(BEFORE)))
    allowed = {key: Tolerance.parse(text) for key, text in tolerances.items()}
    return [each.words for each in differences(locked.facts, after, allowed)]


def test_lines_and_the_digest_are_no_difference() -> None:
    moved = tuple(replace(kernel, line=kernel.line + 10) for kernel in BEFORE.kernels)
    assert found(replace(BEFORE, kernels=moved, program="ba9876543210")) == []


def test_a_kernel_more_is_named_by_its_fusion_boundary_and_line() -> None:
    first, *others = BEFORE.kernels
    split = (first, KernelFact("optimization_barrier", 4096, line=9), *others)
    assert found(replace(BEFORE, kernels=split, launches=4)) == [
        "kernels 3 → 4; kernel split: optimization_barrier at line 9",
        "launches 3 → 4",
    ]


def test_a_kernel_that_also_writes_more_is_still_the_same_one() -> None:
    wider = (
        KernelFact("matmul", 8192, line=5),
        KernelFact("scan", 8, line=9),
        KernelFact("reduction", 128, line=6),
        KernelFact("output", 8192, line=7),
    )
    assert found(replace(BEFORE, kernels=wider)) == ["kernels 3 → 4; kernel split: scan at line 9"]


def test_a_kernel_less_is_no_split() -> None:
    (difference,) = differences(BEFORE, replace(BEFORE, kernels=BEFORE.kernels[1:]))
    assert (difference.words, difference.is_worse, difference.line) == ("kernels 3 → 2", False, 0)


def test_a_new_collective_is_told_with_bytes_axes_and_line() -> None:
    new = CollectiveFact("all-gather", 2**26, ("model",), 2, line=41)
    after = replace(BEFORE, collectives=(*BEFORE.collectives, new), moved=2**27)
    assert found(after) == [
        "collectives 1 → 2; new all-gather, 64 MiB over model, 2 times at line 41",
        "moved 0 B → 128 MiB",
    ]
    larger = replace(BEFORE, collectives=(CollectiveFact("all-reduce", 128, ("data",), line=3),))
    assert found(larger) == ["collectives 1 → 1; new all-reduce, 128 B over data at line 3"]
    assert found(replace(BEFORE, collectives=())) == [
        "collectives 1 → 0; no all-reduce of 64 B any more"
    ]


def test_a_captured_constant_is_told_with_its_line() -> None:
    more = (*BEFORE.constants, ConstantFact(2**22, line=12))
    assert found(replace(BEFORE, constants=more)) == [
        "constants 1 KiB → 4 MiB; constant of 4 MiB captured at line 12"
    ]


def test_an_unrolled_loop_is_told_by_its_equations() -> None:
    after = replace(BEFORE, equations=400, densest=(12, 380), loops=())
    assert found(after) == [
        "equations 10 → 400; 380 of them at line 12",
        "loops 1 → 0; no loop of 20 iterations any more",
    ]
    assert found(replace(BEFORE, equations=30, densest=(12, 28))) == []  # an edit


def test_a_new_dtype_explains_the_bytes_and_the_results() -> None:
    after = replace(
        BEFORE,
        dtypes=(*BEFORE.dtypes, DtypeFact("f64", 4096, line=8, first=6)),
        results="f64[8]",
        outputs=8192,
    )
    assert found(after) == [
        "new dtype f64 at line 6",
        "returns f64[8] instead of f32[8]",
        "results 4 KiB → 8 KiB",
    ]


def test_larger_arrays_of_a_wide_dtype_are_told_and_those_of_the_narrowest_are_not() -> None:
    scalar = replace(BEFORE, dtypes=(*BEFORE.dtypes, DtypeFact("f64", 8, line=5)))
    leaked = replace(BEFORE, dtypes=(DtypeFact("f32", 2**20), DtypeFact("f64", 4096, line=9)))
    (difference,) = differences(scalar, leaked)
    assert difference.words == "f64 arrays up to 8 B → 4 KiB at line 9"
    mixed = replace(BEFORE, dtypes=(DtypeFact("bf16", 2048), DtypeFact("f32", 4)))
    wide = replace(BEFORE, dtypes=(DtypeFact("bf16", 2**20), DtypeFact("f32", 4096, line=3)))
    assert [each.words for each in differences(mixed, wide)] == [
        "f32 arrays up to 4 B → 4 KiB at line 3"
    ]


def test_of_several_new_kernels_the_one_that_others_follow_from_is_named() -> None:
    first, *others = BEFORE.kernels
    new = (KernelFact("shared result", 64, line=4), KernelFact("sort", 128, line=8))
    assert found(replace(BEFORE, kernels=(first, *new, *others))) == [
        "kernels 3 → 5; one of 2 new kernels: sort at line 8"
    ]


def test_more_temporaries_are_placed_where_they_are_written() -> None:
    kernels = (replace(BEFORE.kernels[0], bytes=12288, kept=12288), *BEFORE.kernels[1:])
    assert found(replace(BEFORE, kernels=kernels, temporaries=12288)) == [
        "temp 4 KiB → 12 KiB; 8 KiB more kept at line 5"
    ]


def test_other_inputs_come_first() -> None:
    after = replace(BEFORE, inputs="f32[16,128]", arguments=2**14, launches=9)
    assert [each.figure for each in differences(BEFORE, after)] == [
        Figure.INPUTS,
        Figure.LAUNCHES,
        Figure.ARGUMENTS,
    ]


def test_figures_that_read_alike_have_all_digits() -> None:
    before = replace(BEFORE, temporaries=2**30)
    (difference,) = differences(before, replace(BEFORE, temporaries=2**30 + 64))
    assert difference.change == "temp 1,073,741,824 → 1,073,741,888"


@pytest.mark.parametrize(
    ("tolerance", "tolerated"),
    [("1%", False), ("25%", True), ("1KiB", True), ("1023", False)],
)
def test_tolerances_are_shares_or_amounts(tolerance: str, tolerated: bool) -> None:
    after = replace(BEFORE, temporaries=5120)
    assert (found(after, temp=tolerance) == []) is tolerated
    assert found(replace(BEFORE, temporaries=3072), temp="25%") == []


def test_a_tolerance_of_one_figure_does_not_tolerate_another() -> None:
    after = replace(BEFORE, temporaries=5120, launches=4)
    assert found(after, temp="25%") == ["launches 3 → 4"]


def test_what_is_unknown_now_is_a_difference_and_not_worse() -> None:
    (difference,) = differences(BEFORE, replace(BEFORE, temporaries=-1))
    assert (difference.change, difference.is_worse) == ("temp 4 KiB → ?", False)
