"""Sorts for GPUs that are not here: where XLA calls CUB, and what such a call launches and takes.

Measured figures are those of an NVIDIA H100 80GB HBM3 with JAX 0.11.2 and CUDA 13: events of a
profile without command buffers, and temporaries of XLA's memory analysis.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import jax
import jax.numpy as jnp
import pytest

from jaxsight.compiler import devices
from jaxsight.compiler.hlo import read
from jaxsight.targets.roofline import estimate
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.messages.compiling import Compile, Compiled
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.compilers import Compilers
from tests.compiler.programs import program

CALL = """\
HloModule jit_f, is_scheduled=true

ENTRY %main (k: {key}, v: {value}) -> {value} {{
  %k = {key} parameter(0)
  %v = {value} parameter(1)
  %c = ({key}, {value}, u8[{scratch}]) custom-call(%k, %v), \
custom_call_target="xla.gpu.ext.cub_sort_pairs", \
backend_config={{descending = false, batch_size = {rows} : i64}}
  ROOT %r = {value} get-tuple-element(%c), index=1
}}
"""


def call(
    key: str, value: str, shape: Sequence[int], *, scratch: int = 1000, capability: str = "9.0"
) -> Kernel:
    """The kernel of a call of CUB on a CUDA GPU."""
    dimensions = f"[{','.join(map(str, shape))}]"
    rows = 1 if len(shape) == 1 else shape[0]
    text = CALL.format(key=key + dimensions, value=value + dimensions, rows=rows, scratch=scratch)
    (kernel,) = read(text, platform="cuda", capability=capability).kernels
    return kernel


MEASURED_CALLS = [
    # The key, the value, the shape, launches and µs.
    pytest.param("u32", "f32", (2**24,), 12, 625.7, id="sort of f32[2^24]"),
    pytest.param("u32", "f32", (2**20,), 12, 80.2, id="descending sort of f32[2^20]"),
    pytest.param("u32", "s32", (10**6,), 12, 84.2, id="permutation of 10^6"),
    pytest.param("u32", "u64", (2**16,), 12, 44.4, id="argsort of f32[2^16]"),
    pytest.param("u32", "u64", (2**20,), 12, 85.3, id="argsort of f32[2^20]"),
    pytest.param("u32", "u64", (2**22,), 12, 253.7, id="argsort of f32[2^22]"),
    pytest.param("u32", "u64", (2**24,), 12, 798.7, id="argsort of f32[2^24]"),
    pytest.param("u32", "f32", (64, 2**16), 7, 447.5, id="sort of f32[64,65536]"),
    pytest.param("f32", "s32", (512, 50257), 7, 1864.0, id="top_k of f32[512,50257]"),
]


@pytest.mark.parametrize(("key", "value", "shape", "launches", "microseconds"), MEASURED_CALLS)
def test_a_call_of_cub_is_counted_and_estimated_as_measured(
    key: str, value: str, shape: tuple[int, ...], launches: int, microseconds: float
) -> None:
    kernel = call(key, value, shape)
    assert (kernel.title, kernel.ends_because) == ("CUB radix sort", "sort")
    assert (kernel.launches, kernel.at_least) == (launches, launches)
    seconds = estimate(kernel, parse("cuda:h100"))
    assert seconds is not None
    assert 1 / 1.3 < seconds * 1e6 / microseconds < 1.3


@pytest.mark.parametrize(
    ("key", "shape", "capability", "launches"),
    [
        ("u64", (2**18,), "9.0", (20, 20)),
        ("u16", (2**18,), "9.0", (8, 8)),
        ("u8", (2**18,), "10.0", (6, 6)),
        ("u16", (2**18,), "8.0", (9, 9)),
        ("u8", (2**18,), "8.9", (6, 6)),
        ("u16", (2**18,), "", (8, 9)),
        ("u32", (2**18,), "", (12, 12)),
        ("u16", (2**12,), "9.0", (1, 1)),
        ("u32", (3 * 2**28,), "9.0", (36, 36)),
        ("u16", (100, 2**14), "9.0", (4, 4)),
        ("u8", (100, 2**14), "9.0", (3, 3)),
        ("u64", (200, 2**15), "9.0", (12, 12)),
    ],
)
def test_launches_depend_on_keys_rows_and_chip(
    key: str, shape: tuple[int, ...], capability: str, launches: tuple[int, int]
) -> None:
    kernel = call(key, key, shape, capability=capability)
    assert (kernel.at_least, kernel.launches) == launches


def test_scratch_memory_is_no_result() -> None:
    kernel = call("u32", "f32", (2**20,), scratch=8_500_000)
    assert [value.text for value in kernel.outputs] == ["u32[1048576]", "f32[1048576]"]
    assert kernel.workspace == 8_500_000
    assert kernel.work is not None
    assert kernel.work.written == 4 * 8 * 2**20


@dataclass(frozen=True)
class Sort:
    """A sort of arrays of one shape along `axis`, and what XLA makes of it on a chip."""

    dtype: str
    shape: tuple[int, ...]
    call: str | None
    """What CUB sorts, keys alone or pairs of keys and values; `None` for XLA's own sort."""
    how: str = "sort"
    axis: int = -1
    scratch: int = 0
    """The bytes of scratch memory on the device, if they were measured."""

    def __call__(self, x: jax.Array) -> object:
        return HOW[self.how](x, self.axis)


def _two_keys(x: jax.Array, axis: int) -> object:
    return jax.lax.sort((x, x + 1), num_keys=2, dimension=axis)


def _three_arrays(x: jax.Array, axis: int) -> object:
    return jax.lax.sort((x, x + 1, x + 2), num_keys=1, dimension=axis)


def _with_values(x: jax.Array, axis: int) -> object:
    return jax.lax.sort((x, jnp.ones(x.shape, "int32")), num_keys=1, dimension=axis)


HOW: dict[str, Callable[[jax.Array, int], object]] = {
    "sort": lambda x, axis: jnp.sort(x, axis=axis),
    "unstable": lambda x, axis: jax.lax.sort(x, dimension=axis, is_stable=False),
    "descending": lambda x, axis: jnp.sort(x, axis=axis, descending=True),
    "argsort": lambda x, axis: jnp.argsort(x, axis=axis),
    "unstable argsort": lambda x, axis: jnp.argsort(x, axis=axis, stable=False),
    "top_k": lambda x, axis: jax.lax.top_k(x, 40),
    "unique": lambda x, axis: jnp.unique(x, size=10),
    "two keys": _two_keys,
    "three arrays": _three_arrays,
    "with values": _with_values,
}


def _measured_scratch(temporaries: int, elements: int, width: int) -> int:
    """The scratch of a sort of floats, whose other temporaries are the keys before and after."""
    return temporaries - 2 * elements * width


FACTS = {
    "cuda:h100": [
        # Measured.
        Sort("f32", (2**8,), None),
        Sort("f32", (2**14,), None),
        Sort("f32", (2**15,), "pairs", scratch=_measured_scratch(539392, 2**15, 4)),
        Sort("f32", (2**18,), "pairs", scratch=_measured_scratch(4245248, 2**18, 4)),
        Sort("f32", (2**24,), "pairs", scratch=_measured_scratch(271077120, 2**24, 4)),
        Sort("f32", (2**26,), "pairs", scratch=_measured_scratch(1084278528, 2**26, 4)),
        Sort("bf16", (2**22,), "pairs", scratch=_measured_scratch(34159360, 2**22, 2)),
        Sort("i32", (2**22,), "keys", scratch=17374975),
        Sort("u32", (2**22,), "keys", scratch=17374975),
        Sort("f32", (65536, 64), None),
        Sort("f32", (16384, 256), None),
        Sort("f32", (4096, 1024), None),
        Sort("f32", (4096, 4096), None),
        Sort("f32", (64, 65536), "pairs"),
        Sort("f32", (8, 2**20), None),
        Sort("f32", (4096, 1024), None, axis=0),
        Sort("f32", (2**12,), None, "argsort"),
        Sort("f32", (2**16,), "pairs", "argsort"),
        Sort("f32", (2**20,), "pairs", "unstable argsort"),
        Sort("f32", (2**20,), None, "two keys"),
        Sort("f32", (2**20,), "pairs", "descending"),
        Sort("f32", (512, 50257), "pairs", "top_k"),
        # By XLA's conditions for this GPU.
        Sort("bf16", (512,), None),
        Sort("bf16", (513,), "pairs"),
        Sort("i16", (513,), "keys"),
        Sort("i8", (100,), "keys"),
        Sort("f32", (22000,), None),
        Sort("f32", (22001,), "pairs"),
        Sort("i32", (22001,), "pairs", "with values"),
        Sort("i32", (2**20,), None, "three arrays"),
        Sort("f32", (52, 2**14), None),
        Sort("f32", (53, 2**14), "pairs"),
        Sort("f32", (132, 2**13), "pairs"),
        Sort("f32", (133, 2**13), None),
        Sort("i32", (132, 5000), "keys"),
        Sort("i32", (133, 5000), None),
        Sort("i32", (2**20,), "pairs", "unique"),
        Sort("i32", (2**20,), "keys", "unstable"),
    ],
    "cuda:a100": [
        Sort("f32", (2**15,), None),
        Sort("f32", (2**15 + 1,), "pairs"),
        Sort("bf16", (2**16,), None),
        Sort("bf16", (2**16 + 1,), "pairs"),
        Sort("f32", (24, 2**18), None),
        Sort("f32", (25, 2**18), "pairs"),
        Sort("f32", (133, 5000), None),
        Sort("f32", (145, 5000), "pairs"),
        Sort("f32", (4096, 4096), None),
        Sort("f32", (2**20,), "pairs", "argsort"),
    ],
    "cuda:v100": [
        Sort("f32", (2**14,), None),
        Sort("f32", (2**14 + 1,), "pairs"),
        Sort("f32", (65536, 64), "pairs"),
        Sort("f32", (65536, 64), None, axis=0),
    ],
}
"""What XLA makes of sorts: on an H100 as measured, and on both sides of the conditions of
`ShouldRewriteCompatibleSort` in XLA's `sort_rewriter.cc`.
"""
JAX_DTYPES = {"f32": "float32", "bf16": "bfloat16", "i32": "int32", "u32": "uint32"} | {
    "i16": "int16",
    "i8": "int8",
}


def all_of(facts: Sequence[Sort]) -> str:
    """A program that sorts as each fact says."""

    def sorts(*arrays: jax.Array) -> list[object]:
        results = []
        for number, (fact, array) in enumerate(zip(facts, arrays, strict=True)):
            with jax.named_scope(f"eq[{number}]"):  # as a tracer names equations
                results.append(fact(array))
        return results

    arrays = [jax.ShapeDtypeStruct(fact.shape, JAX_DTYPES[fact.dtype]) for fact in facts]
    return program(sorts, *arrays)


@cache
def compiled() -> dict[str, Compiled]:
    """The facts of each chip as one program, compiled for that chip."""

    async def compile_all() -> dict[str, Compiled]:
        environment = environments.suiting("cuda", jax.__version__)
        assert environment is not None, "`jaxsight targets install cuda` gets the compiler"
        compilers = Compilers(memory=8 * 2**30, deadline=240)
        try:
            answers = {}
            for name, (target, facts) in programs.items():
                request = Compile(0, target, all_of(facts), complete=False)
                answer = await compilers.compile(parse(target), environment, request)
                assert isinstance(answer, Compiled), answer
                answers[name] = answer
            return answers
        finally:
            await compilers.aclose()

    programs = {target: (target, facts) for target, facts in FACTS.items()}
    programs["long"] = "cuda:h100", [Sort("f32", (2**30,), None)]
    return asyncio.run(compile_all())


def sort_of(target: str, number: int) -> Kernel:
    """The kernel that sorts in a fact of a chip."""
    (kernel,) = [
        kernel
        for kernel in compiled()[target].graph.kernels
        if str(number) in kernel.equations and "sort" in kernel.title
    ]
    return kernel


CASES = [
    pytest.param(target, number, fact, id=f"{target} {fact.how} {fact.dtype}{list(fact.shape)}")
    for target, facts in FACTS.items()
    for number, fact in enumerate(facts)
]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")


@pytest.mark.slow
@pytest.mark.parametrize(("target", "number", "fact"), CASES)
def test_xla_sorts_as_on_the_device(target: str, number: int, fact: Sort) -> None:
    kernel = sort_of(target, number)
    assert (kernel.title == "CUB radix sort") is (fact.call is not None)
    if fact.call is not None:
        assert len(kernel.outputs) == {"keys": 1, "pairs": 2}[fact.call]
    if fact.scratch:
        assert fact.scratch <= kernel.workspace + 512 <= 1.03 * fact.scratch


@pytest.mark.slow
def test_notes_say_what_only_the_device_decides() -> None:
    notes = {name: set(answer.notes) for name, answer in compiled().items()}
    expected = {target: {devices.SCRATCH} for target in FACTS}
    assert notes == {**expected, "long": {devices.SORTS}}
