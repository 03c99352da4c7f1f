"""What the device decides, against what an H100 did: kernels, launches and temporaries."""

from __future__ import annotations

import re
import statistics
import sys

import jax
import jax.numpy as jnp
import pytest

import jaxsight
from jaxsight.compiler.hlo import read
from jaxsight.targets.chips import GPUS
from jaxsight.text import units
from tests.compiler.undecided import Program, program, programs

MIB = 2**20
EACH = pytest.mark.parametrize("each", programs(), ids=lambda each: each.name)


@EACH
def test_kernels_of_the_device_are_in_the_range(each: Program) -> None:
    assert each.graph.kernel_count <= each.kernels <= each.graph.kernels_at_most


@EACH
def test_launches_of_the_device_are_in_the_range(each: Program) -> None:
    least, most = each.graph.launches_at_least, each.graph.launches_at_most
    assert least <= each.launches
    assert most is None or each.launches <= most
    assert (most is None) == (not each.graph.launches_known)


@EACH
def test_temporaries_of_the_device_are_in_the_range(each: Program) -> None:
    least, most = each.range
    assert least <= each.temporaries
    assert most < 0 or each.temporaries <= most


def test_ranges_say_something() -> None:
    """Most are a figure, and half of the others no wider than a workspace."""
    ranges = [each.range for each in programs()]
    exact = [least for least, most in ranges if least == most]
    unknown = [least for least, most in ranges if most < 0]
    widths = [most - least for least, most in ranges if 0 <= most > least]
    assert len(exact) > len(ranges) / 2
    assert len(unknown) == sum("conv" in each.name for each in programs())
    assert statistics.median(widths) < 33 * MIB
    kernels = [each.graph.kernels_at_most - each.graph.kernel_count for each in programs()]
    assert sum(kernels) < len(kernels)


@pytest.mark.parametrize(
    ("name", "kernels", "more"),
    [
        ("matmul_f32", "1–1", 32 * MIB),
        ("matmul_i8", "1–2", (32 + 16) * MIB),  # an operand is transposed
        ("matmul_bias_gelu", "2–3", (32 + 64) * MIB),  # the product is stored before the bias
        ("one_hot_lookup", "2–3", (32 + 128) * MIB),  # an operand is computed
        ("mlp_step", "6–11", (32 + 128 + 32) * MIB),  # the largest: an operand and the product
        ("softmax_rows", "1–1", 0),  # Triton's, but no matmul
    ],
)
def test_a_matmul_in_a_fusion_is_taken_apart(name: str, kernels: str, more: int) -> None:
    graph = program(name).graph
    assert f"{graph.kernel_count}–{graph.kernels_at_most}" == kernels
    calls = sum(each.calls for each in graph.undecided)
    assert graph.scratch_at_most == more + 256 * calls


@pytest.mark.parametrize(("chip", "mib"), [("a100", 4), ("l4", 4), ("h100", 32), ("b200", 32)])
def test_the_workspace_is_that_of_the_chip(chip: str, mib: int) -> None:
    assert GPUS[chip].blas_workspace == mib * MIB


@pytest.mark.parametrize("name", ["mlp_step", "conv2d", "sort_long"])
def test_the_device_itself_leaves_nothing_open(name: str) -> None:
    graph = read(program(name).text, platform="cuda", capability="9.0")
    assert not graph.undecided
    assert graph.scratch_at_most == 0
    assert graph.kernels_at_most == graph.kernel_count


CALLS = {
    # Targets of custom calls, with the launches that one call makes at most.
    "__cublas$lt$matmul": 2,
    "__cublas$gemm": 2,
    "__cublas$triangularSolve": None,
    "__cudnn$convForward": None,
    "__cudnn$fmhaSoftmax": None,
    "cusolver_gesvdj_ffi": None,
    "cusolver_syevd_ffi": None,
    "hipsolver_getrf_ffi": None,
    "cusparse_gtsv2_ffi": None,
    "somebodys_kernel": None,
    "__gpu$TopK": 1,
    "cu_threefry2x32_ffi": 1,
    "cu_lu_pivots_to_permutation": 1,
    "triton_kernel_call": 1,
    "mosaic_gpu": 1,
}


@pytest.mark.parametrize(("target", "most"), CALLS.items())
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_launches_of_calls(target: str, most: int | None, platform: str) -> None:
    text = f"""HloModule m
ENTRY main {{
  %p = f32[8,8]{{1,0}} parameter(0)
  ROOT %c = f32[8,8]{{1,0}} custom-call(%p), custom_call_target="{target}"
}}
"""
    graph = read(text, platform=platform)
    assert (graph.launches_at_least, graph.launches_at_most) == (1, most)
    assert graph.launches_known == (most is not None)
    (kernel,) = read(text, platform="cpu").kernels
    assert kernel.launches_at_most == 1, "a call of a library is one thunk of a CPU"


def test_a_split_product_is_several_kernels() -> None:
    text = re.sub(
        r"(lhs_contracting_dims=\{1\})",
        r"algorithm=dot_bf16_bf16_f32_x3, \1",
        program("matmul_f32").text,
    )
    graph = read(text, platform="cuda", workspace=32 * MIB)
    (undecided,) = graph.undecided
    assert (undecided.calls, undecided.kernels) == (3, 2 * 2 + 3 + 2 * 2)
    assert undecided.buffers == 2 * 2 * 64 * MIB + 3 * 64 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
def test_the_range_in_python() -> None:
    matrix = jax.ShapeDtypeStruct((256, 256), "float32")
    found = jaxsight.kernels(lambda a, b: jnp.tanh(a @ b), target="cuda:h100")(matrix, matrix)
    assert found.temp_bytes_at_most > found.temp_bytes + 32 * MIB
    assert found.kernels_at_most >= found.kernel_count
    assert f"(+ ≤ {units.size(found.temp_bytes_at_most - found.temp_bytes)} " in str(found)
    with pytest.raises(jaxsight.ContractBroken, match="temp is "):
        jaxsight.expect(jnp.matmul, target="cuda:h100", temp="16 MiB")(matrix, matrix)
    with pytest.raises(jaxsight.CannotCompile, match="an unknown number of kernels"):
        jaxsight.expect(jnp.fft.fft, target="cuda:h100", launches=5)(matrix)
