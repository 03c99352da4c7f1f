"""`jaxsight.kernels` and `jaxsight.expect`, in the Python that has JAX."""

from __future__ import annotations

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import jaxsight
from jaxsight.library import compiling
from jaxsight.targets.target import parse

X = np.ones((131072, 2), np.float32)


def summed(x):
    k = jnp.stack((jnp.arange(len(x)), jnp.arange(len(x))), axis=-1)
    return x * 2 + jnp.sum(k * x, axis=1, keepdims=True)


def written_out(x):
    k = jnp.stack((jnp.arange(len(x)), jnp.arange(len(x))), axis=-1)
    return x * 2 + (k[..., 0] * x[..., 0] + k[..., 1] * x[..., 1])[:, None]


def test_kernels_of_a_function_on_this_machine() -> None:
    found = jaxsight.kernels(summed, target="cpu")(X)
    assert (found.kernel_count, found.launch_count, found.how) == (2, 2, "device")
    assert found.temp_bytes > 0
    assert found.lines(found.graph.kernels[-1])
    assert all(line.startswith("test_api.py:") for line in found.lines(found.graph.kernels[0]))
    assert "ENTRY" in found.hlo


def test_shapes_alone_will_do_and_jitted_functions_too() -> None:
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype)
    assert jaxsight.kernels(jax.jit(written_out), target="cpu")(shape).kernel_count == 1


def test_it_prints_as_a_table_and_shows_in_notebooks() -> None:
    found = jaxsight.kernels(summed, target="cpu")(X)
    lines = str(found).splitlines()
    assert lines[0].startswith("summed: 2 kernels · 2 launches · temp ")
    assert [line.split()[0] for line in lines[2:]] == ["1", "2", "this"]
    assert lines[-1] == "this machine's CPU, compiled on the device"
    shown = found._repr_html_()
    assert shown.count("<tr>") == 1 + found.kernel_count


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
@pytest.mark.slow
def test_kernels_of_a_function_on_a_device_that_is_not_here() -> None:
    found = jaxsight.kernels(summed, target="cuda:h100")(X)
    assert (found.kernel_count, found.how) == (2, "ahead of time")
    assert found.temp_bytes == 524288
    assert [kernel.ends_because for kernel in found.graph.kernels] == ["reduction", "output"]
    seconds = found.estimate_seconds()
    assert seconds is not None
    assert 1e-6 < seconds < 1e-3


def test_a_contract_that_holds_gives_the_kernels() -> None:
    found = jaxsight.expect(written_out, target="cpu", kernels=1, temp="1 KiB")(X)
    assert found.kernel_count == 1


def test_a_broken_contract_is_an_assertion_with_the_figures_and_the_table() -> None:
    with pytest.raises(AssertionError, match="kernels is 2, at most 1 expected") as caught:
        jaxsight.expect(summed, target="cpu", kernels=1)(X)
    assert "fusion boundary" in str(caught.value)


MESH = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def divided(shape: tuple[int, ...], *spec: str | None) -> jax.ShapeDtypeStruct:
    sharding = NamedSharding(MESH, PartitionSpec(*spec))
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)


WEIGHTS = divided((64, 256), None, "model"), divided((256, 64), "model", None)
BATCH = divided((32, 64), "data", None)


def mlp(x, first, second):
    return (jax.nn.gelu(x @ first) @ second).mean()


def test_a_function_of_several_devices_has_their_number_and_their_collectives() -> None:
    found = jaxsight.kernels(mlp, target="cpu:8")(BATCH, *WEIGHTS)
    assert (found.devices, found.how) == (8, "simulated")
    assert [mesh.text for mesh in found.figures.meshes] == ["data=2, model=4"]
    assert {each.kind for each in found.collectives} == {"all-reduce"}
    assert {each.axes for each in found.collectives} >= {("model",)}
    assert all(each.inserted and each.reduction == "add" for each in found.collectives)
    kernels = found.graph.collectives
    assert found.lines(kernels[0]) == ["test_api.py:91"]
    assert found.moved_bytes == sum(
        each.bytes * kernel.runs for each, kernel in zip(found.collectives, kernels, strict=True)
    )
    assert found.argument_shardings["first"] == PartitionSpec(None, "model")
    assert re.match(r"mlp: .* per device · .* · cpu:8$", str(found).splitlines()[0])
    assert "compiled for 8 simulated devices" in str(found)


def test_a_target_without_a_number_has_as_many_devices_as_the_function_spans() -> None:
    found = jaxsight.kernels(mlp, target="cpu")(BATCH, *WEIGHTS)
    assert str(found).splitlines()[0].endswith(" · 8 × cpu")
    with pytest.raises(jaxsight.CannotCompile, match="spans 8 devices, but cpu:4 has 4"):
        jaxsight.kernels(mlp, target="cpu:4")(BATCH, *WEIGHTS)


def test_collectives_and_what_they_move_are_limited_per_device() -> None:
    jaxsight.expect(mlp, target="cpu:8", collectives=4, moved="1 MiB")(BATCH, *WEIGHTS)
    with pytest.raises(AssertionError, match=r"collectives is ., at most 0 expected"):
        jaxsight.expect(mlp, target="cpu:8", collectives=0)(BATCH, *WEIGHTS)
    with pytest.raises(AssertionError, match=r"moved is .* per device, at most 4 expected"):
        jaxsight.expect(mlp, target="cpu:8", moved=4)(BATCH, *WEIGHTS)
    with pytest.raises(jaxsight.CannotCompile, match="a loop of unknown length"):
        jaxsight.expect(halved, target="cpu:8", moved=4)(BATCH)


def test_host_transfers_are_listed_and_limited() -> None:
    def stored(x):
        return jax.device_put(x * 2, jax.memory.Space.Host)

    rows = jax.ShapeDtypeStruct((32, 64), "float32")
    found = jaxsight.kernels(stored, target="cuda:h100")(rows)
    (transfer,) = found.host_transfers
    assert (transfer.direction, transfer.bytes) == ("to host", 8192)
    assert "1 host transfer, 8 KiB" in str(found)
    with pytest.raises(AssertionError, match="host_moved is 8,192, at most 4 expected"):
        jaxsight.expect(stored, target="cuda:h100", host_moved=4)(rows)


def halved(x):
    return jax.lax.while_loop(lambda v: v.sum() > 1, lambda v: v / 2, x)


def test_amounts_and_targets_are_checked_at_once() -> None:
    with pytest.raises(ValueError, match="invalid amount of memory"):
        jaxsight.expect(summed, temp="4 elephants")
    with pytest.raises(Exception, match="did you mean cuda:h100"):
        jaxsight.kernels(summed, target="h101")


def test_a_captured_array_is_no_folded_one() -> None:
    table = np.random.default_rng(0).random((64, 64)).astype(np.float32)
    jaxsight.expect(lambda x: x @ table, target="cpu", folded=0)(table)


def test_a_loop_s_body_without_a_place_of_its_own_has_the_loop_s() -> None:
    loop = jaxsight.kernels(
        lambda x: jax.lax.while_loop(lambda v: v.sum() < 3, jnp.sin, x), target="cpu"
    )
    found = loop(X)
    assert all(map(found.lines, found.graph.kernels))
    assert str(found).startswith("<lambda>: ")


def test_arrays_too_large_for_a_compiler_process_are_refused_at_once() -> None:
    captured = np.broadcast_to(np.float32(0), (65 * 1024 * 1024,))
    message = "f captures 260 MiB of constants, .*: pass them as arguments"

    def f(x):
        return x + captured

    with pytest.raises(jaxsight.CannotCompile, match=message):
        jaxsight.kernels(f, target="tpu:v5e")(jax.ShapeDtypeStruct((), "float32"))


def test_what_would_be_folded_for_minutes_is_compiled_without_folding() -> None:
    table = np.random.default_rng(0).random(1_000_000).astype(np.float32)
    found = jaxsight.kernels(lambda x: x + jnp.sort(table), target="cpu")(table)
    assert found.figures.is_unfolded
    assert "`sort` of 1,000,000 elements" in found.figures.compiled.notes[-1]
    with pytest.raises(jaxsight.CannotCompile, match="compiled without constant folding"):
        jaxsight.expect(lambda x: x + jnp.sort(table), target="cpu", kernels=9)(table)


@jax.jit
def by_platform(x):
    return jnp.tanh(x) if jax.default_backend() == "gpu" else jnp.sort(x)


def test_a_function_sees_the_platform_of_the_target_and_later_its_own() -> None:
    x = jnp.arange(4.0)[::-1]
    assert by_platform(x)[0] == 0.0
    before = type(jax.devices()[0]).platform
    shape = jax.ShapeDtypeStruct((8,), np.float32)
    for target, primitive in (("tpu:v5e", "sort"), ("cuda:h100", "tanh"), ("rocm", "tanh")):
        traced, notes = compiling.trace(by_platform, parse(target), (shape,), {})
        assert primitive in str(traced.jaxpr)
        assert notes == ()
    assert jaxsight.kernels(by_platform, target="cpu")(x).kernel_count == 1
    assert by_platform(x)[0] == 0.0
    assert jax.default_backend() == "cpu"
    assert type(jax.devices()[0]).platform is before


def test_what_the_target_does_not_answer_is_a_note() -> None:
    def by_memory(x):
        return x + 1 if jax.devices()[0].memory_stats() else x

    _, notes = compiling.trace(by_memory, parse("cuda:h100"), (jnp.ones(4),), {})
    (note,) = notes
    assert note.endswith("reads `memory_stats()`: they are the CPU's here")
    assert "test_api.py:" in note
