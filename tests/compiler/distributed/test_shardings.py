"""Shardings that the partitioner chose, and values that it replicated to reshard them."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import pytest

from jaxsight.compiler.hlo.distributed import shardings
from jaxsight.hlo.shapes import dims
from jaxsight.wire.meshes import Chosen, Mesh
from tests.compiler.distributed import material, programs

PARTITIONERS = ("shardy", "gspmd")
MESH = Mesh((("dp", 2), ("tp", 4)))


def chosen(name: str, partitioner: str) -> dict[tuple[str, str], Chosen]:
    read = shardings.read(material.compiled(partitioner)[name].before, [material.mesh(name)])
    by_key = {(each.equation, each.type): each for each in read}
    assert len(by_key) == len(read)
    return by_key


def starts(value: Chosen, mesh: Mesh) -> list[list[int]]:
    """Where the part of each device begins, according to the spec."""
    sizes = dims(value.type[value.type.index("[") :])
    axes = dict(mesh.axes)
    places = itertools.product(*(range(size) for size in axes.values()))
    result = []
    for place in places:
        at = dict(zip(axes, place, strict=True))
        result.append([
            size
            // math.prod(axes[axis] for axis in names)
            * sum(
                at[axis] * math.prod(axes[minor] for minor in names[number + 1 :])
                for number, axis in enumerate(names)
            )
            for size, names in itertools.zip_longest(sizes, value.spec, fillvalue=())
        ])  # fmt: skip
    return result


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("name", programs.MESH_OF)
def test_inputs_and_outputs_are_where_jax_says(name: str, partitioner: str) -> None:
    places = json.loads(material.compiled(partitioner)[name].places)
    compared = 0
    for (equation, _), value in chosen(name, partitioner).items():
        what, _, number = equation.partition(" ")
        if what in places:
            assert starts(value, material.mesh(name)) == places[what][int(number)]
            compared += 1
    assert compared >= len(places["parameter"])


@pytest.mark.parametrize(
    "name",
    [name for name in programs.MESH_OF if name not in ("partly_manual", "scan_fsdp", "in_loop")],
)
def test_both_partitioners_choose_the_same_where_both_say(name: str) -> None:
    """They print shardings in different formats. (In the others, they choose differently.)"""
    shardy, gspmd = (chosen(name, partitioner) for partitioner in PARTITIONERS)
    shared = shardy.keys() & gspmd.keys()
    assert len(shared) >= 4
    # Shardy leaves the shardings of some operands out.
    shardy, gspmd = (
        {key: replace(values[key], operands=()) for key in shared} for values in (shardy, gspmd)
    )
    assert shardy == gspmd


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_values_have_the_axes_that_they_are_divided_over(partitioner: str) -> None:
    values = chosen("mlp", partitioner)
    assert values["0", "f32[256,512]"].spec == (("dp",), ("tp",))
    specs: dict[str, set[object]] = {type_: set() for _, type_ in values}
    for (_, type_), value in values.items():
        specs[type_].add(value.spec)
    assert specs["f32[256,512]"] == {(("dp",), ("tp",))}
    assert specs["f32[256,128]"] == {(("dp",), ())}
    cube = chosen("mlp_cube", partitioner)
    assert cube["parameter 0", "f32[256,128]"].spec == (("a", "c"), ())


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_values_in_loops_have_shardings(partitioner: str) -> None:
    values = chosen("scan_fsdp", partitioner)
    assert any("/body/" in equation for equation, _ in values)


def _inside(values: dict[tuple[str, str], Chosen]) -> list[tuple[str, str]]:
    """The arrays inside the first equation; GSPMD replicates the counters of loops there."""
    return [key for key in values if key[0].startswith("0/body") and not key[1].endswith("[]")]


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_values_of_one_device_have_none(partitioner: str) -> None:
    """Inside `shard_map`, types are those of one device."""
    for name in ("ring", "collectives", "pipeline"):
        assert not _inside(chosen(name, partitioner))
    partly = chosen("partly_manual", partitioner)
    assert not _inside(partly)
    assert ("1", "f32[256,64]") in partly


@pytest.mark.parametrize(
    ("text", "rank", "spec"),
    [
        ("{replicated}", 2, ()),
        ("{mesh[], replicated}", 2, ()),
        ("{devices=[2,4]<=[8]}", 2, (("dp",), ("tp",))),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", 2, (("dp",), ())),
        ("{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", 2, ((), ("tp",))),
        ("{devices=[8,1]<=[8]}", 2, (("dp", "tp"), ())),
        ("{devices=[8,1]<=[2,4]T(1,0)}", 2, (("tp", "dp"), ())),
        ("{devices=[2,4]0,1,2,3,4,5,6,7}", 2, (("dp",), ("tp",))),
        ("{devices=[2,1,4]<=[8] last_tile_dims={replicated}}", 2, (("dp",), ())),
        ("{mesh['dp'=2,'tp'=4], [{'tp', 'dp'}, {}]}", 2, (("tp", "dp"), ())),
    ],
)
def test_all_formats_of_shardings_are_read(
    text: str, rank: int, spec: tuple[tuple[str, ...], ...]
) -> None:
    read = shardings.sharding(text, rank, [MESH])
    assert read is not None
    assert (read.spec, read.unreduced) == (spec, ())


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("{manual}", 2),
        ("{maximal device=0}", 2),
        ("{mesh['dp'=2,'tp'=4], manual}", 2),
        ("{mesh['axis_0'=8], [{'axis_0'}]}", 1),
        ("{mesh['dp'=2,'tp'=4], [{'dp'}, {}], manual={'tp'}}", 2),
        ("{mesh['dp'=2,'tp'=4], [{'tp':(1)2}, {}]}", 2),
        ("{devices=[1,1,4,2]<=[2,4]T(1,0) last_tile_dims={manual, replicated}}", 2),
        ("{devices=[4,2]<=[8]}", 2),
        ("{devices=[2,2]<=[4]}", 2),
    ],
)
def test_shardings_that_are_not_along_axes_are_left_out(text: str, rank: int) -> None:
    assert shardings.sharding(text, rank, [MESH]) is None


@pytest.mark.parametrize(
    "text",
    [
        "{mesh['dp'=2,'tp'=4], [{'dp'}, {}], unreduced={'tp'}}",
        "{devices=[2,1,4]<=[8] last_tile_dims={unreduced}}",
    ],
)
def test_axes_over_which_a_value_is_still_to_be_summed(text: str) -> None:
    read = shardings.sharding(text, 2, [MESH])
    assert read == shardings.HloSharding((("dp",), ()), ("tp",))


@pytest.mark.parametrize("partitioner", PARTITIONERS)
def test_values_that_are_replicated_to_reshard_them(partitioner: str) -> None:
    made = material.compiled(partitioner)
    (value,) = shardings.rematerialized(made["involuntary"].log)
    assert (value.equation, value.type) == ("0", "f32[64,16,16]")
    sharded = [
        shardings.sharding(text, 3, [material.mesh("involuntary")])
        for text in (value.source, value.target)
    ]
    assert [each and each.spec for each in sharded] == [
        ((), ("a",), ("b",)),
        (("a", "b", "c"), (), ()),
    ]
    in_loop = shardings.rematerialized(made["in_loop"].log)
    assert "0/body/0" in {each.equation for each in in_loop}
    assert {each.type for each in in_loop} == {"f32[64,16,16]"}
    assert not any(
        shardings.rematerialized(each.log)
        for name, each in made.items()
        if name not in ("involuntary", "in_loop")
    )


def test_an_older_wording_is_read() -> None:
    log = (
        "W [spmd] Involuntary full rematerialization. The compiler was not able to go from "
        "sharding {devices=[16,1]<=[16]} to {devices=[1,4,4]<=[4,4]T(1,0) last_tile_dim_replicate} "
        "without doing a full rematerialization of the tensor for HLO operation: %param = "
        'c128[36,8]{1,0} parameter(2), sharding={devices=[16,1]<=[16]}, metadata={op_name="psi"}. '
        "You probably want to enrich the sharding annotations.\n"
    )
    (value,) = shardings.rematerialized(2 * log)
    assert (value.equation, value.type) == ("parameter 2", "c128[576,8]")
