"""What is compiled for devices that are not here: callbacks, Pallas kernels, donated buffers; and
what is refused, with its reason.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass

import jax
import pytest

from jaxsight.compiler.hlo import read
from jaxsight.hlo.text import aliases
from jaxsight.targets.target import parse
from jaxsight.wire.donation import Alias, donations
from jaxsight.wire.meshes import Mesh
from jaxsight.wire.messages.compiling import Compile, Compiled
from jaxsight.wire.messages.replies import Lowered
from jaxsight.wire.messages.requests import Lower
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.compilers import Compilers, Trouble
from tests.tracer.handlers.lab import lab

NEW = jax.__version_info__ >= (0, 11)
"""XLA's newer autotuner drops candidates that have no tiles."""

HEAD = """\
import functools
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import io_callback, pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu, triton as plt
same = jax.ShapeDtypeStruct((64,), "float32")
"""
PALLAS = """\
def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2
"""


@dataclass(frozen=True)
class Program:
    """A source that defines `f`, its example inputs and its target."""

    source: str
    target: str = "cuda:h100"
    x: str = "f32[64]"


PROGRAMS = {
    "print": Program("def f(x):\n    jax.debug.print('{}', x.sum())\n    return jnp.sin(x)\n"),
    "ordered print in a loop": Program(
        "def f(x):\n"
        "    def body(i, x):\n"
        "        jax.debug.print('{}', i, ordered=True)\n"
        "        return x * 2\n"
        "    return jax.lax.fori_loop(0, 10, body, x)\n"
    ),
    "pure_callback": Program("def f(x):\n    return jax.pure_callback(np.sin, same, x) * 2\n"),
    "io_callback": Program("def f(x):\n    return io_callback(np.sin, same, x) * 2\n"),
    "donation": Program(
        "@functools.partial(jax.jit, donate_argnums=0)\n"
        "def f(x):\n    return x['a'].sum(), x['b'] + x['a']\n",
        x="= {'a': np.ones(64, 'f'), 'b': np.ones(64, 'f'), 'c': np.ones(3, 'f')}",
    ),
    "one device": Program(
        "mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ('i',))\n"
        "def f(x):\n"
        "    part = jax.sharding.PartitionSpec('i')\n"
        "    g = jax.shard_map(lambda x: jnp.sin(x) * 2, mesh=mesh, in_specs=part, out_specs=part)\n"
        "    return g(x)\n"
    ),
    "triton": Program(
        f"{PALLAS}def f(x):\n"
        "    options = plt.CompilerParams(num_warps=4)\n"
        "    return pl.pallas_call(double, out_shape=same, compiler_params=options)(x)\n"
    ),
    "mosaic": Program(
        f"{PALLAS}def f(x):\n"
        "    shape = jax.ShapeDtypeStruct((128,), 'float32')\n"
        "    return plgpu.kernel(double, out_type=shape)(x + 1)\n",
        x="f32[128]",
    ),
    "resize": Program(
        "def f(x):\n    return jax.image.resize(x, (8, 112, 112, 3), 'bilinear')\n",
        x="f32[8,224,224,3]",
    ),
    "large sort": Program("def f(x):\n    return jnp.sort(x)\n", x="i32[65536]"),
    "small sort": Program("def f(x):\n    return jnp.sort(x)\n", x="i32[2000]"),
    "sort of three": Program(
        "def f(x):\n    return jax.lax.sort((x, x + 1, x + 2), num_keys=2)\n", x="i32[65536]"
    ),
    "triton on volta": Program(
        f"{PALLAS}def f(x):\n"
        "    options = plt.CompilerParams(num_warps=4)\n"
        "    return pl.pallas_call(double, out_shape=same, compiler_params=options)(x)\n",
        target="cuda:v100",
    ),
    "mosaic on ada": Program(
        f"{PALLAS}def f(x):\n    return pl.pallas_call(double, out_shape=x)(x)\n",
        target="cuda:l4",
        x="f32[128]",
    ),
    "attention on volta": Program(
        "def f(x):\n    return jax.nn.dot_product_attention(x, x, x)\n",
        target="cuda:v100",
        x="bf16[2,32,4,16]",
    ),
    "matmul on volta": Program("def f(x):\n    return x @ x\n", "cuda:v100", "f32[256,256]"),
}
Outcome = tuple[Lowered, Compiled | Trouble]


def lowered(program: Program) -> Lowered:
    file = lab(HEAD + program.source)
    traced = file.trace("f", x=program.x)
    target = parse(program.target)
    request = Lower(1, traced.id, target.platform, target.capability)
    return file.ask(request)


@pytest.fixture(scope="module")
def outcome() -> Callable[[str], Outcome]:
    """What becomes of each program; a target's compiler is one process, and a program is compiled
    once.
    """

    async def compiled() -> dict[str, Outcome]:
        environment = environments.suiting("cuda", jax.__version__)
        assert environment is not None, "`jaxsight targets install cuda` gets the compiler"
        compilers = Compilers(memory=8 * 2**30, deadline=120)
        try:
            outcomes = {}
            for name, program in PROGRAMS.items():
                told = lowered(program)
                request = Compile(0, program.target, told.request.program)
                target = parse(program.target)
                outcomes[name] = told, await compilers.compile(target, environment, request)
            return outcomes
        finally:
            await compilers.aclose()

    outcomes = asyncio.run(compiled())
    return outcomes.__getitem__


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")


def compiled(outcome: Outcome) -> Compiled:
    assert isinstance(outcome[1], Compiled), outcome[1]
    return outcome[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "launches", "copied"),
    [
        ("print", 1, 4),
        ("ordered print in a loop", 10, 4),
        ("pure_callback", 1, 256),
        ("io_callback", 1, 256),
    ],
)
def test_a_callback_is_a_transfer_to_the_host(
    outcome: Callable[[str], Outcome], name: str, launches: int, copied: int
) -> None:
    graph = compiled(outcome(name)).graph
    (callback,) = [kernel for kernel in graph.kernels if kernel.kind == "callback"]
    assert graph.callback_count == 1
    assert callback.title == "host callback (copies to the host)"
    assert callback.ends_because == "host callback"
    assert (callback.launches, callback.bytes_in) == (launches, copied)


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
@pytest.mark.parametrize(
    "call",
    [
        "jax.debug.callback(print, x)",
        "jax.debug.print('{}', x, ordered=True)",
        "jax.pure_callback(np.sin, same, x)",
        "io_callback(np.sin, same, x, ordered=True)",
    ],
)
def test_callbacks_are_lowered_for_every_platform(call: str, platform: str) -> None:
    file = lab(f"{HEAD}def f(x):\n    y = {call}\n    return x, y\n")
    traced = file.trace("f", x="f32[64]")
    first, again = (file.ask(Lower(n, traced.id, platform)) for n in (1, 2))
    assert first.request.program
    assert first.key == again.key


def test_a_tpu_calls_back_by_transfers_that_name_the_host() -> None:
    """As libtpu 0.0.50.1 writes it for `jax.debug.print` on a v5e."""
    graph = read(
        """\
HloModule jit_f, is_scheduled=true

ENTRY %main (x: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %token = token[] after-all()
  %s = (f32[], u32[], token[]) send(%x, %token), channel_id=1, is_host_transfer=true, \
metadata={op_name="jit(f)/eq[0]/debug_print"}
  %d = token[] send-done(%s), channel_id=1, is_host_transfer=true
  %r = (f32[], u32[], token[]) recv(%d), channel_id=2, is_host_transfer=true, \
metadata={op_name="jit(f)/eq[0]/debug_print"}
  %e = (f32[], token[]) recv-done(%r), channel_id=2, is_host_transfer=true
  ROOT %y = f32[] negate(%x)
}
"""
    )
    words = [(each.title, each.bytes_in, each.bytes_out) for each in graph.kernels[:2]]
    assert words == [("send to the host", 4, 0), ("receive from the host", 0, 4)]
    assert graph.callback_count == 1


@pytest.mark.slow
def test_pallas_kernels_are_compiled_for_a_gpu_that_is_not_here(
    outcome: Callable[[str], Outcome],
) -> None:
    triton = compiled(outcome("triton"))
    assert [kernel.title for kernel in triton.graph.kernels] == ["Triton kernel"]
    mosaic = compiled(outcome("mosaic"))
    assert [kernel.title for kernel in mosaic.graph.kernels] == ["loop fusion", "Mosaic kernel"]
    sizes = mosaic.memory
    assert (sizes.temporaries, sizes.arguments, sizes.outputs) == (512, 512, 512)


@pytest.mark.slow
def test_an_emitter_that_fails_is_left_out_and_named(outcome: Callable[[str], Outcome]) -> None:
    resized = compiled(outcome("resize"))
    matmuls = [each.title for each in resized.graph.kernels if "matmul" in each.title]
    without = [note for note in resized.notes if note.startswith("compiled without")]
    if NEW:
        assert (matmuls, without) == (["Triton matmul"] * 2, [])
    else:
        assert matmuls == ["cuBLASLt matmul"] * 2
        assert without == [
            "compiled without Triton's matmuls: XLA fails with \"Couldn't find output tile sizes\""
        ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "noted"), [("large sort", True), ("small sort", False), ("sort of three", False)]
)
def test_cub_is_named_where_it_may_sort(
    outcome: Callable[[str], Outcome], name: str, noted: bool
) -> None:
    notes = compiled(outcome(name)).notes
    assert any("CUB" in note for note in notes) is noted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "attention on volta",
            "Tesla V100-SXM2-16GB has no bfloat16 matmul (ALG_DOT_BF16_BF16_F32): use another dtype",
        ),
        (
            "triton on volta",
            "Pallas's Triton kernels need compute capability 8.0: Tesla V100-SXM2-16GB has 7.0",
        ),
    ],
)
def test_what_a_gpu_lacks_is_named(
    outcome: Callable[[str], Outcome], name: str, message: str
) -> None:
    _, trouble = outcome(name)
    assert isinstance(trouble, Trouble)
    assert trouble.message == message


@pytest.mark.slow
def test_a_mosaic_kernel_for_an_older_gpu_is_refused_with_what_helps(
    outcome: Callable[[str], Outcome],
) -> None:
    """JAX 0.12 makes a Triton kernel there."""
    _, trouble = outcome("mosaic on ada")
    if NEW:
        assert isinstance(trouble, Compiled)
        return
    assert isinstance(trouble, Trouble)
    assert trouble.message == (
        "Pallas's Mosaic kernels need compute capability 9.0 or newer: NVIDIA L4 has 8.9; "
        "`compiler_params` of `jax.experimental.pallas.triton` select Triton"
    )


@pytest.mark.slow
def test_a_workspace_is_no_result(outcome: Callable[[str], Outcome]) -> None:
    (matmul,) = compiled(outcome("matmul on volta")).graph.kernels
    assert matmul.title == "cuBLASLt matmul"
    assert (matmul.bytes_out, matmul.workspace) == (256 * 256 * 4, 4 * 2**20)


@pytest.mark.slow
def test_donated_buffers_are_named_with_the_results_that_take_them(
    outcome: Callable[[str], Outcome],
) -> None:
    told, _ = outcome("donation")
    found = compiled(outcome("donation"))
    assert found.memory.aliased == 256
    named = donations(
        found.aliases, len(found.graph.parameters), told.parameters, told.results, told.donated
    )
    assert list(map(str, named)) == [
        "donated: x['a'] → result 1",
        "donated but unused: x['b']",
        "donated but unused: x['c']",
    ]


def test_aliases_of_a_module_with_one_result_and_of_one_without_any() -> None:
    assert aliases("HloModule f, input_output_alias={ {}: (2, {}, may-alias) }, x={(f32[])}") == (
        Alias(0, 2),
    )
    assert aliases("HloModule f, entry_computation_layout={(f32[])->f32[]}\n%a") == ()


def test_donations_are_not_guessed_where_xla_has_other_parameters() -> None:
    assert donations((Alias(0, 0),), 2, ("x",), ("result 0",), ("x",)) == ()


@pytest.mark.slow
def test_a_mesh_of_one_device_is_no_obstacle(outcome: Callable[[str], Outcome]) -> None:
    assert compiled(outcome("one device")).graph.kernel_count == 1


@pytest.mark.parametrize(
    "body",
    [
        "jax.lax.with_sharding_constraint(x, jax.sharding.NamedSharding(mesh, part)) * 2",
        "jax.shard_map(jnp.sin, mesh=mesh, in_specs=part, out_specs=part)(x)",
    ],
)
def test_a_program_of_an_abstract_mesh_is_distributed_over_its_devices(body: str) -> None:
    mesh = "jax.sharding.AbstractMesh((8,), ('i',), (jax.sharding.AxisType.Auto,))"
    source = (
        f"mesh = {mesh}\npart = jax.sharding.PartitionSpec('i')\ndef f(x):\n    return {body}\n"
    )
    distribution = lowered(Program(source)).request.distribution
    assert distribution is not None
    assert (distribution.devices, distribution.meshes) == (8, (Mesh((("i", 8),)),))
