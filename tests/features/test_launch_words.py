"""How launches are worded: one figure, a range where values decide, a lower end where trips do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jaxsight.features.kernels.launches import iterations, launches, undecided
from jaxsight.rules.jx210_tiny_launches import rule as jx210_tiny_launches
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Branch, Graph, Kernel, Loop
from jaxsight.wire.kernels.work import Work


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


def test_an_iteration_has_its_launches_and_its_time() -> None:
    loops = Loop("a", 7), Loop("b", 7), Loop("c", None)
    written = int(3352.32e3)  # a kernel waits for its first bytes for longer
    body = Kernel(
        "k", "fusion", "loop fusion", "while", (), loops=(2,), launches=1, at_least=0,
        work=Work(written=written),
    )  # fmt: skip
    graph = Graph("m", (body, kernel("last", 1, 1)), loops=loops)
    kernels: Any = SimpleNamespace(graph=graph, target=parse("cuda:h100"), place=None)
    assert list(iterations(kernels)) == ["loop: 7 iterations"]
    assert list(undecided(kernels)) == [
        "loop: unknown number of iterations, 1 launch, ≈ 2.2 µs each"
    ]
    kernels.target = parse("cpu")
    assert list(undecided(kernels)) == ["loop: unknown number of iterations, 1 launch each"]


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
        compiled=SimpleNamespace(graph=graph),
        target=parse("cuda:h100"),
        flow=SimpleNamespace(steps={"0": None}),
        quoted=lambda _: "this",
    )
    (noticed,) = jx210_tiny_launches.find(reading)
    assert noticed.message == f"loop is launch-bound: {words}"
