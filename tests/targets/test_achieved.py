"""Measured times beside estimates, and what kernels achieve of the chip."""

from __future__ import annotations

import pytest

from jaxsight.targets.achieved import MeasuredKernel, measured_kernels
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Graph, Kernel, Loop
from jaxsight.wire.kernel_work import Operations, Work
from jaxsight.wire.messages.measuring import KernelTime

MIB = 1 << 20


def kernel(name: str, moved: int = 0, flops: int = 0, **more: object) -> Kernel:
    work = Work(read=moved // 2, written=moved // 2) if moved else None
    return Kernel(name, "fusion", name, "output", ("0",), flops=flops, work=work, **more)  # type: ignore[arg-type]


def rows(
    graph: Graph, *times: KernelTime, others: Graph | None = None
) -> list[MeasuredKernel[str]]:
    def lines(kernel: Kernel) -> list[str]:
        return [f"{kernel.name}.py:1"]

    return list(
        measured_kernels(graph, times, parse("cuda:h100"), lines, lambda: others or Graph("m", ()))
    )


def test_a_kernel_has_its_estimate_and_its_share_of_the_bandwidth() -> None:
    graph = Graph("m", (kernel("a", 256 * MIB, 1000), kernel("b", 2 * MIB)))
    first, second = rows(graph, KernelTime("a", 1, 300e-6), KernelTime("b", 1, 100e-6))
    assert (first.index, second.index) == (0, 1)
    assert (first.share, second.share) == pytest.approx((0.75, 0.25))
    assert first.bytes_per_second == pytest.approx(256 * MIB / 300e-6)
    assert first.flops_per_second == pytest.approx(1000 / 300e-6)
    assert first.bandwidth_share == pytest.approx(256 * MIB / 300e-6 / 3.35e12, rel=0.01)
    assert first.estimate_seconds is not None
    assert first.ratio == pytest.approx(300e-6 / first.estimate_seconds)
    assert first.lines == ("a.py:1",)


def test_a_product_has_its_share_of_the_peak_of_its_unit() -> None:
    flops = 2 * 4096**3
    products = Operations("matrix", "bf16", flops)
    work = Work(read=64 * MIB, written=32 * MIB, operations=(products,))
    dot = Kernel("dot", "gemm", "dot", "output", ("0",), flops=flops, work=work)
    [row] = rows(Graph("m", (dot,)), KernelTime("dot", 1, 170e-6))
    # 989 TFLOP/s in NVIDIA's data sheet of the H100 SXM.
    assert row.arithmetic_share == pytest.approx(flops / 170e-6 / 989.4e12, rel=0.01)


def test_a_kernel_of_the_hlo_that_was_run_has_its_lines_but_no_estimate() -> None:
    graph, run = Graph("m", (kernel("a", MIB),)), Graph("m", (kernel("gemm.2", MIB),))
    found, unknown = rows(
        graph, KernelTime("gemm.2", 1, 10e-6), KernelTime("helper", 2, 5e-6), others=run
    )
    assert (found.index, found.lines, found.estimate_seconds) == (None, ("gemm.2.py:1",), None)
    assert (unknown.index, unknown.lines, unknown.ratio) == (None, (), None)
    assert unknown.bytes_per_second is None


def test_the_profile_knows_how_often_a_loop_of_unknown_length_ran() -> None:
    graph = Graph(
        "m",
        (kernel("a", MIB, loops=(0,)),),
        loops=(Loop("while.1", None),),
    )
    [row] = rows(graph, KernelTime("a", 7, 70e-6))
    assert row.estimate_seconds is None
    assert row.bytes_per_second == pytest.approx(7 * MIB / 70e-6)


def test_no_time_has_no_share() -> None:
    [row] = rows(Graph("m", (kernel("a", MIB),)), KernelTime("a", 1, 0.0))
    assert (row.share, row.bytes_per_second, row.flops_per_second) == (0.0, None, None)
