"""Transfers between the host and the device, in HLO that XLA made of programs that offload."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from jaxsight.compiler.hlo import read
from jaxsight.targets import communication
from jaxsight.targets.roofline import total
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.kernel_work import HostTransfer
from tests.compiler.offloading import compare
from tests.compiler.offloading.material import texts
from tests.compiler.offloading.programs import PROGRAMS

TARGETS = ("cuda:h100", "tpu:v5e")
MIB = 2**20


def graph(target: str, program: str) -> Graph:
    return read(texts()[target, program], platform=parse(target).platform)


def amounts(graph: Graph, transfers: Iterable[HostTransfer]) -> tuple[int, int]:
    """Bytes to the host and to the device."""
    chosen = list(transfers)
    to_host = [each for each in chosen if each.direction == "to host"]
    to_device = [each for each in chosen if each.direction == "to device"]
    return graph.host_bytes(to_host), graph.host_bytes(to_device)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("target", TARGETS)
def test_transfers_are_those_of_the_memory_spaces(target: str, program: str) -> None:
    text = texts()[target, program]
    assert compare.with_memory_spaces(text, graph(target, program)) == []


DIFFERENT = ("computed_on_host", "computed_on_host_with_result", "activation_waits")
"""XLA for TPUs copies results of the host once more; XLA for GPUs computes with the array that is
still on the device."""


@pytest.mark.parametrize("program", [name for name in PROGRAMS if name not in DIFFERENT])
def test_gpus_and_tpus_offload_the_same_bytes(program: str) -> None:
    gpu, tpu = (graph(target, program) for target in TARGETS)
    assert amounts(gpu, gpu.offloads) == amounts(tpu, tpu.offloads)


def test_an_offloaded_residual_of_a_scan_moves_once_in_each_iteration() -> None:
    found = graph("cuda:h100", "remat_in_scan")
    assert [
        (each.direction, each.what, each.type, each.bytes, each.runs, each.is_async, each.kernel)
        for each in found.host_transfers
    ] == [
        ("to host", "update", "f32[1,512,512]", MIB, 8, True, -1),
        ("to device", "slice", "f32[1,512,512]", MIB, 8, False, -1),
    ]
    assert amounts(found, found.host_transfers) == (8 * MIB, 8 * MIB)


def test_a_value_that_waits_on_the_host_is_no_temporary_of_the_device() -> None:
    found = graph("cuda:h100", "remat_one_layer")
    stored = {each.producer for each in found.temporaries}
    read = {
        edge.source.index
        for edge in found.edges
        if (edge.source.what, edge.target.what) == ("kernel", "kernel")
    }
    (writer,) = read - stored
    assert (
        found.kernels[writer].name
        in texts()["cuda:h100", "remat_one_layer"].split("copy-start(%", 1)[1].split(")", 1)[0]
    )


@pytest.mark.parametrize("target", TARGETS)
def test_parameters_and_outputs_on_the_host_take_no_memory_of_the_device(target: str) -> None:
    found = graph(target, "adam_on_host_moments")
    assert [value.on_host for value in found.parameters] == [False, True, True, False]
    assert [value.on_host for value in found.outputs] == [False, True, True]
    assert found.fixed_bytes == 3 * MIB
    assert found.written_bytes >= 2 * MIB


def test_a_loop_of_unknown_length_has_no_known_bytes() -> None:
    found = graph("cuda:h100", "streamed_until")
    assert not found.host_bytes_known
    assert found.host_bytes(found.host_transfers) == MIB
    assert found.host_bytes_at_least(found.host_transfers) == 0


def test_a_transfer_in_one_arm_of_a_conditional_is_a_range() -> None:
    found = graph("cuda:h100", "in_a_branch")
    assert found.host_bytes(found.host_transfers) == MIB
    assert found.host_bytes_at_least(found.host_transfers) == 0


def test_callbacks_move_their_operands_and_results() -> None:
    found = graph("cuda:h100", "callback_of_two")
    assert [
        (each.direction, each.what, each.type, each.bytes, each.kernel)
        for each in found.host_transfers
    ] == [
        ("to host", "callback", "f32[128], s32[64,2]", 1024, 0),
        ("to device", "callback", "f32[32], s32[]", 132, 0),
    ]
    assert found.offloads == ()


def test_a_kernel_that_reads_the_host_itself_stays_a_kernel() -> None:
    """XLA does not know the offsets of a slice in a loop of unknown length, so a kernel slices."""
    found = graph("cuda:h100", "streamed_until")
    (slice_,) = found.host_transfers
    assert found.kernels[slice_.kernel].name == slice_.name == "dynamic-slice-start.1"


def test_a_callback_in_a_fusion_is_a_callback() -> None:
    found = graph("cuda:h100", "callback_in_scan")
    assert found.callback_count == 1
    assert [(each.direction, each.bytes, each.runs) for each in found.host_transfers] == [
        ("to host", 256, 16)
    ]


def test_a_copy_within_the_host_does_not_cross_the_link() -> None:
    found = graph("cuda:h100", "passed_through")
    (copy,) = found.host_transfers
    assert (copy.direction, copy.bytes) == ("within host", MIB)
    assert communication.least_seconds(copy, parse("cuda:h100")) is None


@pytest.mark.parametrize(
    ("target", "milliseconds"),
    [("cuda:h100", 0.133), ("cuda:a100", 0.266), ("cuda:gb200", 0.0186), ("tpu:v5e", 0.524)],
)
def test_the_total_has_the_time_of_the_link(target: str, milliseconds: float) -> None:
    """8 MiB that no kernel overlaps in one direction."""
    found = graph("cuda:h100", "stacked_on_host")
    only = Graph("m", (), loops=found.loops, host_transfers=found.host_transfers)
    estimated = total(only, parse(target))
    assert estimated is not None
    assert estimated.is_lower_bound
    assert estimated.seconds * 1e3 == pytest.approx(milliseconds, rel=0.01)


def test_nothing_is_transferred_on_cpus() -> None:
    text = texts()["cuda:h100", "result_to_host"]
    assert read(text, platform="cpu").host_transfers == ()


SPACES = {"device": "", "host": "S(5)", "vmem": "S(1)", "temp": "S(2)"}


def copying(platform: str, before: str, after: str, *, is_async: bool) -> Graph:
    """A program that copies between two memories."""
    tiles = "T(1024)" if platform == "tpu" else ""

    def type_(space: str) -> str:
        layout = "".join(filter(None, [tiles, SPACES[space]]))
        return f"f32[1024]{{0{':' if layout else ''}{layout}}}"

    source, result = type_(before), type_(after)
    copy = f"ROOT %copy = {result} copy(%p)"
    if is_async:
        copy = (
            f"%start = ({result}, {source}, u32[]) copy-start(%p)\n"
            f"  ROOT %copy = {result} copy-done(%start)"
        )
    text = (
        "HloModule m, is_scheduled=true\n\n"
        f"ENTRY %main (p: f32[1024]) -> f32[1024] {{\n"
        f"  %p = {source} parameter(0)\n  {copy}\n}}\n"
    )
    return read(text, platform=platform)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("after", SPACES)
@pytest.mark.parametrize("before", SPACES)
@pytest.mark.parametrize("platform", ["cuda", "rocm", "tpu", "cpu"])
def test_a_copy_between_memories_is_a_transfer_or_a_kernel(
    platform: str, before: str, after: str, is_async: bool
) -> None:
    """Only memory of the host makes a host transfer; a TPU's own memories make `transfers`."""
    found = copying(platform, before, after, is_async=is_async)
    direction = ""
    if platform != "cpu" and "host" in (before, after):
        direction = "to host" if after == "host" else "to device"
        direction = "within host" if before == after else direction
    assert [each.direction for each in found.host_transfers] == [direction] * bool(direction)
    own = platform == "tpu" and is_async and not direction
    assert (found.transfers, found.kernel_count) == (int(own), int(not own and not direction))


def test_infeed_and_outfeed_are_transfers_of_their_kind() -> None:
    text = """\
HloModule m, is_scheduled=true

ENTRY %main (p: f32[16]) -> f32[8,4] {
  %p = f32[16]{0} parameter(0)
  %token = token[] after-all()
  %infeed = (f32[8,4]{1,0}, token[]) infeed(%token)
  %fed = f32[8,4]{1,0} get-tuple-element(%infeed), index=0
  %outfeed = token[] outfeed(%p, %token), outfeed_shape=f32[16]{0}
  ROOT %copy = f32[8,4]{1,0} copy(%fed)
}
"""
    found = read(text, platform="cuda")
    assert [(each.direction, each.what, each.bytes) for each in found.host_transfers] == [
        ("to device", "infeed", 128),
        ("to host", "outfeed", 64),
    ]
