"""Collectives of kernels: what is sent, between which devices, and why."""

from __future__ import annotations

from collections import Counter

import pytest

from jaxsight.compiler.hlo import read
from jaxsight.wire.chunks import equation_paths
from jaxsight.wire.kernel_graph import Collective, Graph, Kernel
from jaxsight.wire.meshes import Mesh
from tests.compiler.distributed import counted, material, programs

PARTITIONERS = ("shardy", "gspmd")
MESH = Mesh((("dp", 2), ("tp", 4)))


def collectives(graph: Graph) -> list[tuple[Kernel, Collective]]:
    return [(kernel, kernel.collective) for kernel in graph.kernels if kernel.collective]


def counts(graph: Graph, *, loops: bool = True) -> counted.Counts:
    own: counted.Counts = Counter()
    for kernel, collective in collectives(graph):
        key = (collective.kind, collective.bytes, collective.group_size)
        own[key] += kernel.runs if loops else 1
    return own


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name == "mlp" else [])
        for name in programs.MESH_OF
    ],
)
def test_collectives_on_cpus_are_those_of_an_own_count(name: str, partitioner: str) -> None:
    text = material.compiled(partitioner)[name].hlo
    graph = read(text)
    assert graph.notes == ()
    assert counts(graph) == counted.collectives(text)
    assert sum(counts(graph).values()) > 0


@pytest.mark.parametrize("name", material.stored())
def test_collectives_on_other_devices_are_those_of_an_own_count(name: str) -> None:
    """libtpu does not write how often a loop runs, so that each is counted once."""
    text = material.text(name)
    on_tpu = name.startswith("v5e/")
    graph = read(text, platform="tpu" if on_tpu else "cuda")
    assert graph.notes == ()
    assert counts(graph, loops=not on_tpu) == counted.collectives(text, loops=not on_tpu)


@pytest.mark.parametrize("name", material.stored())
def test_every_kernel_that_communicates_says_what(name: str) -> None:
    graph = read(material.text(name), platform="tpu" if name.startswith("v5e/") else "cuda")
    for kernel in graph.kernels:
        assert (kernel.kind == "collective") == (kernel.collective is not None)
    for kernel, collective in collectives(graph):
        devices = 16 if name.startswith("v5e/") else 8
        sent = [device for group in collective.groups for device in group]
        assert set(sent) <= set(range(devices))
        if collective.kind != "collective-permute":
            assert sorted(sent) == list(range(devices))
        assert collective.bytes >= max(kernel.bytes_out, kernel.bytes_in // len(kernel.inputs))


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize(
    ("name", "axes"),
    [
        ("mlp", {("all-reduce", "tp"): 1, ("all-reduce", "dp"): 1}),
        (
            "mlp_cube",
            {("all-gather", "c"): 2, ("all-reduce", "b"): 1, ("all-reduce", "a", "c"): 1},
        ),
        ("scan_fsdp", {("all-gather", "x"): 2, ("all-reduce", "x"): 1}),
        ("ring", {("collective-permute", "x"): 2}),
        ("pipeline", {("collective-permute", "x"): 1, ("all-reduce", "x"): 1}),
    ],
)
def test_collectives_have_axes_of_the_mesh(
    name: str, axes: dict[tuple[str, ...], int], partitioner: str
) -> None:
    graph = read(material.compiled(partitioner)[name].hlo, meshes=[material.mesh(name)])
    own = Counter((each.kind, *each.axes) for _, each in collectives(graph))
    assert own == axes


GROUPS = {
    "{{0,4},{1,5},{2,6},{3,7}}": ("dp",),
    "{{0,1,2,3},{4,5,6,7}}": ("tp",),
    "{}": ("dp", "tp"),
    "[2,4]<=[8]": ("tp",),
    "[4,2]<=[2,4]T(1,0)": ("dp",),
    "mesh['dp'=2,'tp'=4] {'dp'}": ("dp",),
    "mesh['dp'=2,'tp'=4] {'dp','tp'}": ("dp", "tp"),
    "mesh['axis_0'=8] {'axis_0':(1)2}": ("dp",),
    "mesh['axis_0'=8] {'axis_0':(2)4}": ("tp",),
    "mesh['axis_0'=4,'axis_1'=2], device_ids=([2,4]T(1,0)) {'axis_0'}": ("tp",),
    "mesh['axis_0'=4,'axis_1'=2], device_ids=([2,4]T(1,0)) {'axis_1'}": ("dp",),
    "mesh['axis_0'=2,'axis_1'=4], device_ids=(0,1,2,3,4,5,6,7) {'axis_1'}": ("tp",),
    "{{0,1},{2,3},{4,5},{6,7}}": (),
}
TEXT = """\
HloModule jit_f, num_partitions=8

%add (x: f32[], y: f32[]) -> f32[] {{
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %sum = f32[] add(%x, %y)
}}

ENTRY %main (p: f32[16]) -> f32[16] {{
  %p = f32[16]{{0}} parameter(0)
  ROOT %r = f32[16]{{0}} all-reduce(%p), channel_id=1, {groups}, to_apply=%add, metadata={{op_name="{name}"}}
}}
"""


def reduced(
    groups: str = "replica_groups={}, use_global_device_ids=true", name: str = "", **known: object
) -> Collective:
    graph = read(TEXT.format(groups=groups, name=name), **known)  # type: ignore[arg-type]
    ((_, collective),) = collectives(graph)
    return collective


@pytest.mark.parametrize(("text", "axes"), GROUPS.items())
def test_all_formats_of_groups_are_read(text: str, axes: tuple[str, ...]) -> None:
    collective = reduced(f"replica_groups={text}, use_global_device_ids=true", meshes=[MESH])
    devices = [device for group in collective.groups for device in group]
    assert sorted(devices) == list(range(8))
    assert collective.axes == axes
    assert collective.reduction == "add"
    assert collective.bytes == 64


def test_axes_are_those_of_a_mesh_whose_devices_are_in_another_order() -> None:
    across = Mesh((("dp", 2), ("tp", 4)), devices=(0, 2, 4, 6, 1, 3, 5, 7))
    groups = "replica_groups={{0,1},{2,3},{4,5},{6,7}}, use_global_device_ids=true"
    assert reduced(groups, meshes=[MESH, across]).axes == ("dp",)


def test_groups_of_replicas_are_all_devices_if_there_is_one_replica() -> None:
    assert reduced("replica_groups={{0}}").groups == (tuple(range(8)),)


@pytest.mark.parametrize(
    ("name", "inserted"),
    [
        ("jit(f)/eq[3]/shard_map/eq[body.1]/psum", False),
        ("jit(f)/eq[3]/shard_map/eq[body.2]/add", True),
        ("jit(f)/eq[4]/jit(g)/eq[body.0]/dot_general", False),
        ("jit(f)/(eq[5]/mul:eq[3]/shard_map/eq[body.1]/psum)", False),
        ("jit(f)/(eq[5]/mul:eq[6]/add)", True),
        ("x", True),
    ],
)
def test_a_collective_is_inserted_unless_an_equation_asks_for_it(name: str, inserted: bool) -> None:
    assert reduced(name=name, communicates={"3/body/1", "4"}).inserted is inserted


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("jit(f)/eq[3]/while/body/eq[body.1]/mul", ("3/body/1",)),
        ("jit(f)/(eq[17]/reduce_sum:eq[38]/dot_general:eq[26]/dot)", ("17", "38", "26")),
        ("jit(f)/eq[1]/while/(eq[body.2]/add:eq[body.3]/mul)/x", ("1/body/2", "1/body/3")),
        ("(jit(f)/eq[1]/a:(eq[2]/b:w))", ("1", "2")),
        ("jit(f)/(eq[1]/a:eq[2", ("1",)),
        ("jit(f)/eq[1]/a;jit(f)/eq[2]/b", ("1",)),
        ("(w1:w2:x)", ()),
        ("", ()),
    ],
)
def test_names_that_xla_has_merged_are_those_of_all_equations(
    name: str, paths: tuple[str, ...]
) -> None:
    assert equation_paths(name) == paths


def test_a_combined_collective_has_all_its_equations() -> None:
    graph = read(material.compiled("shardy")["mlp"].hlo)
    combined = max(collectives(graph), key=lambda each: len(each[0].outputs))[0]
    assert len(combined.outputs) == 3
    assert len(combined.equations) == (3 if "(eq[" in material.compiled("shardy")["mlp"].hlo else 1)


def test_a_start_without_kernels_before_its_end_is_not_asynchronous() -> None:
    graph = read(material.text("h100@0.10.2/collectives"), platform="cuda")
    own = {
        each.kind: each.is_async for _, each in collectives(graph) if each.reduction != "maximum"
    }
    assert own == {
        "all-gather": True,
        "all-reduce": True,
        "all-to-all": False,
        "collective-permute": False,
        "reduce-scatter": True,
    }


@pytest.mark.parametrize("version", ["h100", "h100@0.10.2"])
def test_starts_have_the_results_of_their_ends(version: str) -> None:
    """The start of an all-reduce returns its operands, too, since JAX 0.12."""
    graph = read(material.text(f"{version}/collectives"), platform="cuda")
    for kernel, collective in collectives(graph):
        if collective.kind == "all-reduce":
            assert [value.text for value in kernel.outputs] == ["f32[64,128]"]


def test_a_collective_beside_fusions_on_a_tpu_counts_once() -> None:
    text = material.text("v5e/fsdp")
    assert text.count("AsyncCollectiveDone") == 2
    graph = read(text, platform="tpu", meshes=[Mesh((("x", 16),))])
    beside = [each for kernel, each in collectives(graph) if kernel.name.startswith("async")]
    assert [(each.kind, each.bytes, each.axes) for each in beside] == [
        ("all-gather", 2048 * 512 * 2, ("x",)),
        ("all-gather", 1024 * 512 * 2, ("x",)),
    ]
    assert all(each.is_async for each in beside)
    assert not any(kernel.name.startswith("async-collective-done") for kernel in graph.kernels)
    around = [kernel for kernel in graph.kernels if kernel.name == "fusion.39"]
    assert [kernel.kind for kernel in around] == ["fusion"]
    assert around[0].equations == ("0",)


@pytest.mark.parametrize(
    ("name", "runs"), [("ring", [16, 16]), ("pipe", [5, 1]), ("big", [1, 4, 4, 4, 4, 1])]
)
def test_loops_on_a_tpu_are_counted_from_their_instructions(name: str, runs: list[int]) -> None:
    """`big` is a matmul that takes turns with communication, in a loop that XLA has made."""
    graph = read(material.text(f"v5e/{name}"), platform="tpu")
    assert graph.launches_known
    assert [kernel.runs for kernel, _ in collectives(graph)] == runs


def test_a_loop_without_a_constant_limit_is_not_counted() -> None:
    graph = read(material.text("v5e/while"), platform="tpu")
    assert [loop.trips for loop in graph.loops] == [None]


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_ids_of_devices_launch_nothing(partitioner: str) -> None:
    made = material.compiled(partitioner)
    assert any("partition-id()" in each.hlo for each in made.values())
    names = {kernel.name for each in made.values() for kernel in read(each.hlo).kernels}
    assert not any("partition-id" in name or name.endswith("-done") for name in names)
