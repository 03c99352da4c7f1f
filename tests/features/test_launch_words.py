"""How launches are worded: one figure, a range where values decide, a lower end where trips do."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jaxsight.figures.program_notes import costs, iterations, undecided
from jaxsight.figures.summary import kernel_count, launches
from jaxsight.rules.jx210_tiny_launches import rule as jx210_tiny_launches
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import CALLBACK, Branch, Graph, Kernel, Loop
from jaxsight.wire.kernel_work import Undecided, Work
from tests.compiler.undecided import program
from tests.figures.made import made


def kernel(name: str, times: int, least: int, *, branch: int = -1, loop: int = -1) -> Kernel:
    loops = (loop,) if loop >= 0 else ()
    return Kernel(
        name, "fusion", "loop fusion", "output", (), branch=branch, loops=loops, launches=times,
        at_least=least,
    )  # fmt: skip


ARMS = (Branch("c", 0, 2), Branch("c", 1, 2))


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (Graph("m", (kernel("a", 1, 1),)), "1 launch"),
        (Graph("m", (kernel("a", 4, 4), kernel("b", 0, 0))), "4 launches"),
        (
            Graph("m", (kernel("a", 3, 3, branch=0), kernel("b", 7, 7, branch=1)), branches=ARMS),
            "3–7 launches",
        ),
        (Graph("m", (kernel("a", 1, 1, branch=1),), branches=ARMS), "0–1 launches"),
        (Graph("m", (kernel("sort", 16, 15),)), "15–16 launches"),
        (
            Graph("m", (kernel("a", 2, 2), kernel("b", 1, 0, loop=0)), loops=(Loop("w", None),)),
            "≥ 2 launches",
        ),
    ],
)
def test_launches_in_words(graph: Graph, words: str) -> None:
    assert launches(graph) == words


def test_an_iteration_has_its_launches_and_what_it_costs() -> None:
    loops = Loop("a", 7), Loop("b", 7), Loop("c", None)
    written = int(3352.32e3)  # a kernel waits for its first bytes for longer
    body = Kernel(
        "k", "fusion", "loop fusion", "while", (), loops=(2,), launches=1, at_least=0,
        work=Work(written=written),
    )  # fmt: skip
    graph = Graph("m", (body, kernel("last", 1, 1)), loops=loops)
    kernels = made(graph)
    assert list(iterations(kernels)) == ["loop: 7 iterations"]
    assert list(undecided(kernels)) == [
        "loop: unknown number of iterations, 1 launch each",
        "loop: an iteration takes ≈ 2.2 µs on the device, ≈ 3.1 µs on the host",
    ]
    on_cpu = made(graph, "cpu")
    assert list(undecided(on_cpu)) == ["loop: unknown number of iterations, 1 launch each"]


@pytest.mark.parametrize(
    ("name", "device", "host"),
    [
        # Microseconds of an iteration on an H100, and of its host: the time of the whole program.
        ("fori_loop of one small kernel (1024 f32) 1000", 2214.54 / 1000, 6278.8 / 1000),
        ("while of unknown length, 100 turns 1024", None, 2211.3 / 100),
        ("scan of matmul 64x256 100", 430.47 / 100, 1004.1 / 100),
    ],
)
def test_costs_of_an_iteration_are_near_measured_ones(
    name: str, device: float | None, host: float
) -> None:
    kernels = made(program(name).graph)
    ((on_device, on_host),) = costs(kernels)
    assert on_host is not None
    assert on_device is not None
    assert on_host * 1e6 == pytest.approx(host, rel=0.1)
    if device is not None:
        assert on_device * 1e6 == pytest.approx(device, rel=0.3)


@pytest.mark.parametrize("what", ["a library", "a callback", "an arm", "an unknown loop"])
def test_costs_that_are_not_known(what: str) -> None:
    inside = replace(kernel("k", 7, 7, loop=0), work=Work(written=1))
    loops, branches = [Loop("w", 7)], ()
    match what:
        case "a library":
            inside = replace(inside, besides=None)
        case "a callback":
            inside = replace(inside, kind=CALLBACK)
        case "an arm":
            inside, branches = replace(inside, branch=0), ARMS
        case "an unknown loop":
            loops.append(Loop("inner", None, parent=0))
            inside = replace(inside, loops=(0, 1))
    graph = Graph("m", (inside,), loops=tuple(loops), branches=branches)
    kernels = made(graph)
    _, on_host = next(costs(kernels))
    assert on_host is None


def test_kernels_and_launches_that_the_device_decides_are_ranges() -> None:
    tuned = Undecided("cuBLAS", kernels=3, workspace=32 << 20)
    matmul = replace(kernel("matmul", 1, 1), besides=3, undecided=tuned)
    graph = Graph("m", (kernel("a", 1, 1), matmul))
    assert (kernel_count(graph), launches(graph)) == ("2–4 kernels", "2–5 launches")
    called = Graph("m", (replace(kernel("svd", 1, 1), besides=None), matmul))
    assert (kernel_count(called), launches(called)) == ("2–4 kernels", "≥ 2 launches")
    never = Graph("m", (replace(kernel("svd", 0, 0), besides=None),))
    assert launches(never) == "0 launches"


@pytest.mark.parametrize(
    ("arms", "trips", "words"),
    [
        ((3000, 3000), 1000, "3,000 launches take about 9 ms"),
        ((2000, 3000), 1000, "up to 3,000 launches take up to about 9 ms"),
        ((3000, 3000), None, "3,000 launches per iteration take about 9 ms"),
    ],
)
def test_launches_that_an_arm_decides_are_an_upper_end(
    arms: tuple[int, int], trips: int | None, words: str
) -> None:
    kernels = tuple(kernel("k", n, n, branch=b, loop=0) for b, n in enumerate(arms))
    branches = (Branch("c", 0, 2, loop=0), Branch("c", 1, 2, loop=0))
    graph = Graph("m", kernels, loops=(Loop("w", trips, equation="0"),), branches=branches)
    reading: Any = SimpleNamespace(
        on_target=SimpleNamespace(graph=graph),
        target=parse("cuda:h100"),
        flow=SimpleNamespace(steps={"0": None}),
        quoted=lambda _: "this",
    )
    (noticed,) = jx210_tiny_launches.find(reading)
    assert noticed.message == f"loop is launch-bound: {words}"
