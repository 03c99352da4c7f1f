"""Estimated times against published measurements and against what can be worked out by hand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import jax
import pytest

import jaxsight
from jaxsight.compiler.hlo import read
from jaxsight.compiler.hlo.flops import COSTLY
from jaxsight.targets.chips.instructions import instructions
from jaxsight.targets.roofline import LAUNCH, estimate, total
from jaxsight.targets.target import names, parse
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.kernel_work import Operations, Work
from tests.compiler.estimate_cases import CASES, PUBLISHED, Published, graph, text
from tests.compiler.estimates_page import comparisons, page, share
from tests.compiler.measured import cases

ROOT = Path(__file__).parents[2]


def seconds(target: str, case: str) -> float:
    found = total(graph(target, case), parse(target))
    assert found is not None
    assert not found.is_lower_bound
    return found.seconds


def kernel(target: str, case: str, words: str) -> Kernel:
    (found,) = [each for each in graph(target, case).kernels if words in each.title]
    return found


@pytest.mark.parametrize("measured", PUBLISHED, ids=lambda each: f"{each.target}-{each.case}")
def test_an_estimate_is_near_a_published_measurement(measured: Published) -> None:
    estimated = seconds(measured.target, measured.case)
    assert measured.seconds / 1.3 < estimated < 1.3 * measured.seconds


def test_the_page_shows_what_the_model_gives() -> None:
    shown = (ROOT / "docs" / "estimates.md").read_text(encoding="utf-8")
    begin, end = "<!-- generated -->\n", "<!-- end -->"
    assert shown[shown.index(begin) + len(begin) : shown.index(end)] == page()


LEAST = {"large": (0.6, 0.9), "calibration": (0.75, 0.85)}
"""The shares of measured programs that have to be within a factor of 1.3 and 2."""


@pytest.mark.parametrize("group", LEAST)
def test_most_estimates_are_near_what_was_measured_on_an_h100(group: str) -> None:
    compared = [each for each in comparisons() if each.group == group]
    assert (share(compared, 1.3), share(compared, 2)) >= LEAST[group]
    assert share(compared, 2) >= LEAST[group][1]


def test_a_measured_time_of_a_scatter_is_between_the_ends_of_its_range() -> None:
    ranges = {
        each.name: (each.measured, each.estimated)
        for each in comparisons()
        if each.estimated is not None and each.estimated.at_most is not None
        if each.estimated.is_lower_bound
    }
    assert len(ranges) >= 8
    for name, (measured, estimated) in ranges.items():
        assert estimated.at_most is not None
        assert estimated.seconds / 1.3 < measured < estimated.at_most, name


@pytest.mark.parametrize("opcode", sorted(COSTLY))
def test_an_operation_that_is_counted_apart_takes_other_instructions(opcode: str) -> None:
    dtype = "s32" if opcode.startswith("shift") else "f32"
    assert opcode == "shift-right-arithmetic" or instructions(opcode, dtype) != 1


@pytest.mark.parametrize("chip", ["cuda:h100", "cuda:v100", "cuda:rtx4090"])
def test_a_function_takes_its_instructions_at_the_rate_of_the_cores(chip: str) -> None:
    def of(opcode: str, dtype: str = "f32") -> float:
        work = Work((Operations("vector", dtype, 10**12, "", opcode),))
        found = estimate(Kernel("k", "op", "op", "output", (), work=work), parse(chip))
        assert found is not None
        return found - LAUNCH

    assert of("log") == pytest.approx(25 * of(""), rel=1e-6)
    assert of("multiply-add") == pytest.approx(of("") / 2, rel=1e-6)
    assert of("", "f64") > 1.99 * of("")
    assert of("exponential", "f64") > of("exponential")


def test_an_array_in_the_cache_is_read_faster_only_where_that_was_measured() -> None:
    def rate(chip: str, size: int) -> float:
        found = estimate(Kernel("k", "op", "op", "output", (), work=Work(read=size)), parse(chip))
        assert found is not None
        return size / found

    assert rate("cuda:h100", 2**25) > 1.1 * rate("cuda:h100", 2**30)
    assert rate("cuda:a100", 2**25) < rate("cuda:a100", 2**30)


def test_what_adds_by_compare_and_swap_has_no_upper_end() -> None:
    found = total(
        cases.graph("calibration/scatter add bf16/65536x128 -> 100000"), parse("cuda:h100")
    )
    assert found is not None
    assert found.is_lower_bound
    assert found.at_most is None


def test_a_scatter_of_few_rows_does_not_take_the_estimate_from_a_long_program() -> None:
    found = total(cases.graph("large/cross_entropy_grad"), parse("cuda:h100"))
    assert found is not None
    assert not found.is_lower_bound


NOT_MODELLED = ("cholesky", "eigh", "qr", "svd", "solve", "while", "top_k")


def test_only_libraries_and_scatters_have_no_estimate() -> None:
    without = [each for each in comparisons() if each.ratio is None]
    for each in without:
        scatters = [k for k in cases.graph(each.name).kernels if k.work and k.work.atomics]
        assert scatters or any(word in each.name for word in NOT_MODELLED), each.name


WORKLOADS = [
    (target, name)
    for target in ("cuda:h100", "tpu:v5e")
    for name in cases.stored(target)
    if name.startswith("workloads/")
]
WITHOUT_MODEL = {"library", "custom call", "sort"}


def test_there_are_thirty_workloads_for_a_gpu_and_a_tpu() -> None:
    assert len(WORKLOADS) == 2 * 30


@pytest.mark.parametrize(("chip", "name"), WORKLOADS)
def test_a_workload_has_an_estimate_or_kernels_that_are_the_reason(chip: str, name: str) -> None:
    target, found = parse(chip), cases.graph(name, chip)
    assert found.notes == ()
    whole = total(found, target)
    assert whole is not None
    missing = [kernel for kernel in found.kernels if estimate(kernel, target) is None]
    assert not whole.is_lower_bound or missing
    for kernel in missing:
        assert kernel.kind in WITHOUT_MODEL or "scatter" in kernel.title, kernel.title


MICRO = 1e-6
ORDERS = [
    # (target, case, seconds as operations or bytes at the rates of the chip's data sheet)
    ("cuda:h100", "f32", 2 * 4096**3 / 494.7e12),
    ("cuda:h100", "f32_high", 2 * 4096**3 / 494.7e12),
    ("cuda:h100", "f32_highest", 2 * 4096**3 / 66.9e12),
    ("cuda:l4", "f32", 2 * 4096**3 / 60e12),
    ("cuda:l4", "f32_highest", 2 * 4096**3 / 30.3e12),
    ("cuda:v100", "f32", 2 * 4096**3 / 15.7e12),
    ("cuda:v100", "f16", 2 * 4096**3 / 125e12),
    ("cuda:h100", "f64", 2 * 4096**3 / 66.9e12),
    ("cuda:v100", "f64", 2 * 4096**3 / 7.8e12),
    ("cuda:l4", "f64", 2 * 4096**3 / 0.473e12),
    ("cuda:h100", "c64", 8 * 4096**3 / 494.7e12),
    ("cuda:v100", "c64", 8 * 4096**3 / 15.7e12),
    ("tpu:v5e", "f32", 2 * 4096**3 / 197e12),
    ("tpu:v5e", "f32_high", 3 * 2 * 4096**3 / 197e12),
    ("tpu:v5e", "f32_highest", 6 * 2 * 4096**3 / 197e12),
    ("tpu:v5e", "s8", 2 * 4096**3 / 393e12),
    ("cuda:h100", "gathered", LAUNCH),
    ("cuda:h100", "gathered_and_summed", LAUNCH),
    ("cuda:h100", "sliced", LAUNCH),
    ("cuda:h100", "row_by_row", 2 * 1000 * LAUNCH),
    ("cuda:h100", "written_row_by_row", 3 * 1000 * LAUNCH),
    ("cuda:h100", "doubled", 2 * 2**30 / 3352e9),
    ("cuda:a100", "doubled", 2 * 2**30 / 2039e9),
    ("tpu:v5e", "doubled", 2 * 2**30 / 819e9),
    ("cuda:h100", "transformed", 2 * 2 * 8 * 4096**2 / 3352e9),
    ("cuda:h100", "convolved", 2 * 32 * 56 * 56 * 256 * 256 * 9 / 989.4e12),
    ("tpu:v5e", "convolved", 2 * 32 * 56 * 56 * 256 * 256 * 9 / 197e12),
    ("cuda:h100", "convolved_gradient", 3 * 2 * 32 * 56 * 56 * 256 * 256 * 9 / 989.4e12),
    ("tpu:v5e", "softmax", 4 * 4 * 8192**2 / 819e9),
    ("tpu:v5e", "gathered", 2 * MICRO),
    ("tpu:v5e", "sliced", MICRO),
    ("tpu:v5e", "row_by_row", 2 * 1000 * MICRO),
    ("tpu:v5e", "written_row_by_row", 1000 * MICRO),
]


@pytest.mark.parametrize(("target", "case", "order"), ORDERS)
def test_an_estimate_is_within_a_factor_of_two_of_the_right_order(
    target: str, case: str, order: float
) -> None:
    assert order / 2 < seconds(target, case) < order * 2


@pytest.mark.parametrize(("case", "words"), [("scattered", "scatter"), ("updated", "in place")])
def test_an_update_in_place_takes_what_it_writes_and_the_copy_before_it_the_array(
    case: str, words: str
) -> None:
    target = parse("cuda:h100")
    update = estimate(kernel("cuda:h100", case, words), target)
    copy = estimate(kernel("cuda:h100", case, "copy"), target)
    assert update is not None
    assert copy is not None
    assert update < 2 * LAUNCH
    assert 0.5 < copy / (2 * 256e6 / 3352e9) < 2


def test_a_sort_has_the_passes_and_comparisons_of_its_network() -> None:
    """Rows of 4096 fit into a tile, with their positions; 2^22 elements are 10 stages more."""
    (sort,) = graph("cuda:h100", "sorted_rows").kernels
    size = 2 * 4 * 4096**2
    assert sort.work is not None
    assert sort.work.written == size
    (comparisons,) = sort.work.operations
    assert comparisons.count == 4096 * 2048 * (12 * 13 // 2)
    longer = text("cuda:h100", "sorted_rows").replace("[4096,4096]", "[4,4194304]")
    (sort,) = read(longer).kernels
    assert sort.work is not None
    assert sort.work.before is not None
    assert sort.work.written == (1 + 10) * size
    assert (
        sort.work.before.written
        == sum(stage - 12 + 1 for stage in range(12, 22)) * size + size // 2
    )


@pytest.mark.parametrize("case", ["eigh", "svd", "qr", "cholesky", "lu", "solve_triangular"])
def test_what_has_no_model_has_no_figure_and_makes_the_total_a_lower_bound(case: str) -> None:
    target = parse("cuda:h100")
    found = graph("cuda:h100", case)
    libraries = [each for each in found.kernels if each.kind == "library"]
    assert libraries
    assert all(estimate(each, target) is None for each in libraries)
    whole = total(found, target)
    assert whole is not None
    assert whole.is_lower_bound


def test_a_lower_bound_has_no_iteration_of_a_loop_of_unknown_length() -> None:
    target = parse("cuda:h100")
    unknown = re.sub(r'"known_trip_count":\{[^}]*\},?', "", text("cuda:h100", "row_by_row"))
    found = read(unknown, platform="cuda")
    outside = [each for each in found.kernels if not each.loops]
    (condition,) = [each for each in found.kernels if each.loops and each.at_least]
    certain = [estimate(each, target) for each in (*outside, condition)]
    whole = total(found, target)
    assert whole is not None
    assert whole.is_lower_bound
    assert whole.seconds == sum(seconds for seconds in certain if seconds is not None)


def test_on_a_tpu_a_decomposition_has_no_figure() -> None:
    found = graph("tpu:v5e", "cholesky")
    whole = total(found, parse("tpu:v5e"))
    assert whole is not None
    assert whole.is_lower_bound


def test_batch_dimensions_of_a_product_on_a_tpu_are_not_contracted() -> None:
    """Attention of 128 heads: two products of 1024 x 64 and 64 x 1024 each."""
    matrix = [
        operations.count
        for each in graph("tpu:v5e", "attention").kernels
        if each.work is not None
        for operations in each.work.operations
        if operations.unit == "matrix"
    ]
    assert matrix == [2 * 128 * 1024 * 1024 * 64] * 2


def test_what_stays_in_vector_memory_is_no_traffic_on_a_tpu() -> None:
    """All kernels read half a megabyte: from HBM one does, another what a transfer brought."""
    found = graph("tpu:v5e", "summed").kernels
    size = 4 * 1024 * 128
    assert sum(each.bytes_in + each.bytes_out for each in found) > 5 * size
    works = [each.work for each in found if each.work is not None]
    assert len(works) == len(found)
    moved = sum(work.read + work.written for work in works)
    assert 3 * size <= moved < 3 * size + 4096


def test_a_program_on_a_tpu_costs_no_launches() -> None:
    found = graph("tpu:v5e", "softmax")
    alone = [
        Kernel("k", "op", "op", "output", (), launches=each.launches, work=Work(read=819))
        for each in found.kernels
    ]
    assert [estimate(each, parse("tpu:v5e")) for each in alone] == [1e-9] * len(alone)


def test_a_tpu_takes_as_many_passes_as_libtpu_counts_cycles() -> None:
    """The cycles of libtpu's own cost model grow with the precision as the estimates do."""
    fast, slow = (graph("tpu:v5e", case).kernels[-1].work for case in ("f32", "f32_highest"))
    assert fast is not None
    assert slow is not None
    ratio = seconds("tpu:v5e", "f32_highest") / seconds("tpu:v5e", "f32")
    assert ratio == pytest.approx(slow.cycles / fast.cycles, rel=0.1)


CHIPS = [name for name in names() if ":" in name]
RATES = [
    # (unit, dtype, precision, chips that have no rate for it)
    ("matrix", "f32", "", ()),
    ("matrix", "f32", "highest", ()),
    ("matrix", "f32", "dot_bf16_bf16_f32_x3", ("cuda:v100", "cuda:t4")),
    ("matrix", "bf16", "", ("cuda:v100", "cuda:t4")),
    ("matrix", "s8", "", ("cuda:v100", "cuda:b300", "cuda:rtx6000pro", "tpu:7x")),
    ("matrix", "f4e2m1fn", "", tuple(CHIPS)),
    ("vector", "f32", "", ()),
]


@pytest.mark.parametrize(("unit", "dtype", "precision", "without"), RATES)
@pytest.mark.parametrize("chip", CHIPS)
def test_a_dtype_without_a_rate_has_no_figure(
    unit: str, dtype: str, precision: str, without: tuple[str, ...], chip: str
) -> None:
    work = Work((Operations(unit, dtype, 10**9, precision),))
    found = estimate(Kernel("k", "op", "op", "output", (), work=work), parse(chip))
    assert (found is None) == (chip in without)


@pytest.mark.parametrize("chip", [chip for chip in CHIPS if chip.startswith("cuda")])
def test_a_full_precision_product_is_never_faster_than_a_reduced_one(chip: str) -> None:
    def of(dtype: str, precision: str = "") -> float:
        work = Work((Operations("matrix", dtype, 10**12, precision),))
        found = estimate(Kernel("k", "op", "op", "output", (), work=work), parse(chip))
        assert found is not None
        return found

    assert of("f16") <= of("f32") <= of("f32", "highest") <= 1.1 * of("f64")


@pytest.mark.parametrize(
    ("chip", "algorithm", "like", "passes"),
    [
        ("cuda:h100", "dot_bf16_bf16_f32", ("bf16", ""), 1),
        ("cuda:h100", "dot_bf16_bf16_f32_x3", ("bf16", ""), 3),
        ("cuda:h100", "dot_tf32_tf32_f32", ("f32", ""), 1),
        ("cuda:h100", "dot_f32_f32_f32", ("f32", "highest"), 1),
        ("cuda:h100", "dot_any_f8_any_f8_f32", ("f8e4m3fn", ""), 1),
        ("cuda:v100", "dot_tf32_tf32_f32", ("f32", "highest"), 1),
        ("tpu:v5e", "dot_bf16_bf16_f32_x6", ("f32", "highest"), 1),
    ],
)
def test_an_algorithm_takes_the_passes_that_it_names(
    chip: str, algorithm: str, like: tuple[str, str], passes: int
) -> None:
    def of(dtype: str, precision: str, count: int) -> float:
        work = Work((Operations("matrix", dtype, count, precision),))
        found = estimate(Kernel("k", "op", "op", "output", (), work=work), parse(chip))
        assert found is not None
        return found

    dtype, precision = like
    assert of("f32", algorithm, 10**12) == pytest.approx(of(dtype, precision, passes * 10**12))


def test_a_product_of_int8_on_a_chip_without_a_rate_has_no_figure() -> None:
    target = parse("cuda:v100")
    assert estimate(kernel("cuda:v100", "s8", "matmul"), target) is None


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.slow
def test_what_is_compiled_here_is_estimated_as_the_text_that_was_kept() -> None:
    """The same on each JAX: texts differ between versions."""
    case = CASES["f32_highest"]
    arguments = [jax.ShapeDtypeStruct(*each) for each in case.arguments]
    found = jaxsight.kernels(case.function, target="cuda:h100")(*arguments)
    assert found.estimate_seconds() == pytest.approx(seconds("cuda:h100", "f32_highest"), rel=0.1)


def test_every_case_is_there() -> None:
    for name, case in CASES.items():
        for target in case.targets:
            assert graph(target, name).kernels
