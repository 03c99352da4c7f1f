"""Estimated times of collectives, against what can be worked out by hand."""

from __future__ import annotations

import pytest

from jaxsight.compiler.hlo import read
from jaxsight.targets.chips import GPUS, TPUS
from jaxsight.targets.chips.links import LINKS
from jaxsight.targets.communication import communication, seconds
from jaxsight.targets.roofline import LAUNCH, estimate, total
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Collective, Graph, Kernel
from jaxsight.wire.kernel_work import Work
from tests.compiler.distributed import material

H100 = parse("cuda:h100")
EIGHT = (tuple(range(8)),)
SIZE = 1 << 30


def sends(kind: str, groups: tuple[tuple[int, ...], ...] = EIGHT, **other: bool) -> Kernel:
    what = Collective(kind, SIZE, groups, **other)  # type: ignore[arg-type]
    return Kernel("k", "collective", kind, "collective", (), collective=what)


@pytest.mark.parametrize(
    ("kind", "share"),
    [
        ("all-reduce", 14 / 8),
        ("all-gather", 7 / 8),
        ("reduce-scatter", 7 / 8),
        ("all-to-all", 7 / 8),
    ],
)
def test_a_collective_sends_what_a_ring_does(kind: str, share: float) -> None:
    assert seconds(sends(kind), H100) == pytest.approx(share * SIZE / 450e9)
    assert seconds(sends(kind), parse("tpu:v5e")) == pytest.approx(share * SIZE / 200e9)
    assert estimate(sends(kind), H100) == pytest.approx(share * SIZE / 450e9 + LAUNCH)


def test_a_permutation_sends_everything_once_unless_nothing_moves() -> None:
    around = tuple((device, (device + 1) % 8) for device in range(8))
    assert seconds(sends("collective-permute", around), H100) == pytest.approx(SIZE / 450e9)
    assert seconds(sends("collective-permute", ((0, 0), (1, 1))), H100) == 0


@pytest.mark.parametrize(
    ("target", "groups", "known"),
    [
        ("cuda:h100", (tuple(range(16)),), False),
        ("cuda:h100", (tuple(range(8)), tuple(range(8, 16))), True),
        ("cuda:h100", ((0, 8), (1, 9)), False),
        ("cuda:gb200", (tuple(range(72)),), True),
        ("cuda:a6000", ((0, 1),), True),
        ("cuda:a6000", EIGHT, False),
        ("cuda:h100", (), False),
        ("tpu:v4", EIGHT, False),
        ("cpu", EIGHT, False),
    ],
)
def test_there_is_an_estimate_only_for_devices_that_are_connected(
    target: str, groups: tuple[tuple[int, ...], ...], known: bool
) -> None:
    assert (seconds(sends("all-gather", groups), parse(target)) is not None) is known


def test_links_of_a_slice_are_those_of_a_chip_with_the_most_neighbours() -> None:
    assert LINKS["v5e"].rate() == LINKS["v5e"].rate("4x4") == 200e9
    assert LINKS["v5e"].rate("2x2") == 100e9
    assert LINKS["v5p"].rate("2x2x1") == 200e9
    assert LINKS["v5e"].rate("1x1") == 0


def test_every_gpu_has_links() -> None:
    assert GPUS.keys() | TPUS.keys() == LINKS.keys() | {"v4", "7x"}


def test_a_total_hides_collectives_beside_kernels_but_not_more_than_the_links_allow() -> None:
    work = Kernel("w", "fusion", "loop fusion", "output", (), work=Work(read=1 << 34))
    busy = estimate(work, H100)
    assert busy is not None
    beside, alone = sends("all-gather", is_async=True), sends("all-gather")
    sent = 7 / 8 * SIZE / 450e9
    hidden, waited = (total(Graph("m", (work, each)), H100) for each in (beside, alone))
    assert hidden is not None
    assert waited is not None
    assert hidden.seconds == pytest.approx(busy)
    assert hidden.is_lower_bound
    assert waited.seconds == pytest.approx(busy + sent + LAUNCH)
    assert not waited.is_lower_bound
    most = total(Graph("m", (work, *[beside] * 9)), H100)
    assert most is not None
    assert most.seconds == pytest.approx(9 * (sent + LAUNCH))


def test_communication_of_a_program() -> None:
    graph = read(material.text("h100/mlp"), platform="cuda")
    found = communication(graph, H100)
    assert found is not None
    assert not found.is_lower_bound
    assert 0 < found.overlapped < found.seconds
    assert communication(graph, parse("cpu")) is None
    none = communication(Graph("m", ()), H100)
    assert none is not None
    assert none.seconds == 0
