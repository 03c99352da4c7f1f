"""How collectives are worded: their number, the bytes that one device moves, what decides them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jaxsight.figures.collectives import summed
from jaxsight.figures.program_notes import change
from jaxsight.figures.summary import communication, headline, origin, scope
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Branch, Collective, Graph, Kernel, Loop
from jaxsight.wire.messages.compiling import Compiled, Memory

MIB = 1 << 20
ARMS = (Branch("c", 0, 2), Branch("c", 1, 2))


def collective(
    mebibytes: int, *, runs: int = 1, least: int = 1, branch: int = -1, loop: int = -1
) -> Kernel:
    return Kernel(
        "r", "collective", "all-reduce", "collective", (), branch=branch, runs=runs, at_least=least,
        loops=(loop,) if loop >= 0 else (),
        collective=Collective("all-reduce", mebibytes * MIB, axes=("data",)),
    )  # fmt: skip


FUSION = Kernel("f", "fusion", "loop fusion", "output", ())


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (Graph("m", (FUSION,)), []),
        (Graph("m", (FUSION, collective(4))), ["1 collective, 4 MiB"]),
        (Graph("m", (collective(4), collective(2))), ["2 collectives, 6 MiB"]),
        (
            Graph("m", (collective(4, runs=8, loop=0),), loops=(Loop("w", 8),)),
            ["1 collective, 32 MiB"],
        ),
        (
            Graph("m", (collective(3), collective(4, least=0, loop=0)), loops=(Loop("w", None),)),
            ["2 collectives, ≥ 3 MiB"],
        ),
        (
            Graph("m", (collective(1, branch=0), collective(4, branch=1)), branches=ARMS),
            ["2 collectives, 1 MiB–4 MiB"],
        ),
    ],
)
def test_collectives_have_their_number_and_the_bytes_of_one_device(
    graph: Graph, words: list[str]
) -> None:
    assert communication(graph) == words


def test_a_collective_names_its_axes_and_its_runs() -> None:
    alone, looped = collective(32), collective(32, runs=8, loop=0)
    graph = Graph("m", (alone, looped), loops=(Loop("w", 8),))
    assert summed([alone], graph) == ["all-reduce 32 MiB over data"]
    assert summed([looped], graph) == ["all-reduce 32 MiB over data × 8"]


def test_the_headline_and_the_origin_say_how_many_devices() -> None:
    several = compiled(Graph("m", (collective(4),)), 8, -1)
    assert headline(several, parse("cuda:h100")) == (
        "1 kernel · 1 launch · 1 collective, 4 MiB per device · 8 × h100"
    )
    ahead = replace(several, how="ahead of time", memory=Memory(temporaries=0))
    assert headline(ahead, parse("cuda:h100x8")) == (
        "1 kernel · 1 launch · temp 0 B per device · 1 collective, 4 MiB · h100x8"
    )
    words = "compiled ahead of time (no devices)"
    assert origin(ahead, parse("cuda:h100x8")) == f"8 × NVIDIA H100 80GB HBM3, {words}"
    assert origin(ahead, parse("tpu:v4:2x2x1")) == f"8 devices of 4 × TPU v4, {words}"


def compiled(graph: Graph, devices: int, temporaries: int) -> Compiled:
    return Compiled(
        1, "cpu", "simulated", graph, Memory(temporaries=temporaries), "", 0.0, devices=devices
    )


def test_a_comparison_of_programs_for_several_devices_is_per_device() -> None:
    before = compiled(Graph("m", (collective(4), collective(2))), 8, MIB)
    after = compiled(Graph("m", (collective(2),)), 8, 0)
    assert change(before, after) == (
        "kernels 2 → 1 · launches 2 → 1 · collectives 2 → 1 · moved 6 MiB → 2 MiB per device"
        " · temp 1 MiB → 0 B per device"
    )
    alone = compiled(Graph("m", (FUSION,)), 1, 0)
    assert change(alone, after) == (
        "devices 1 → 8 · collectives 0 → 1 · moved 0 B → 2 MiB per device"
    )
    assert change(after, after) == "the same"


@pytest.mark.parametrize(
    ("communication", "words"),
    [
        (Collective("all-gather", 1, axes=("data", "model")), "over data, model"),
        (Collective("all-gather", 1, groups=((0, 1, 2, 3), (4, 5, 6, 7))), "in groups of 4"),
        (Collective("collective-permute", 1, groups=((0, 1), (1, 0))), "between 2 pairs"),
        (Collective("collective-permute", 1), ""),
    ],
)
def test_groups_that_are_no_axes_have_a_size(communication: Collective, words: str) -> None:
    assert scope(communication) == words


def test_collectives_of_a_kind_are_summed_where_they_run_as_often() -> None:
    graph = Graph("m", (), loops=(Loop("w", 12), Loop("v", None)))
    kernels = [
        collective(32),
        collective(4),
        collective(2, runs=12, loop=0),
        collective(1, loop=1),
        FUSION,
    ]
    assert summed(kernels, graph) == [
        "2 all-reduces 36 MiB over data",
        "all-reduce 2 MiB over data × 12",
        "all-reduce 1 MiB over data × ?",
    ]
