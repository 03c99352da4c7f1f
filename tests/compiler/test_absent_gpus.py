"""Kernels of GPUs that are not here, before XLA generates code: they are those of the complete
compile.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax
import pytest

from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compile, Compiled
from jaxsight.workers.compilation import environments
from jaxsight.workers.compilation.compilers import Compilers, Trouble
from jaxsight.workers.compilation.environments import CompilerEnvironment, ends_early
from tests.compiler.test_reach import PROGRAMS, Program, lowered

Both = tuple[Compiled | Trouble, Compiled | Trouble]
"""What is answered before code is generated, and after it."""

OTHERS = {
    "elementwise": Program("def f(x):\n    return jnp.sin(x) * 2\n"),
    "reduction": Program("def f(x):\n    return (jnp.sin(x) + 1).sum()\n", x="f32[4096]"),
    "softmax": Program("def f(x):\n    return jax.nn.softmax(x)\n", x="f32[512,8]"),
    "matmuls": Program(
        "def f(x):\n    return jax.grad(lambda w: jnp.tanh(x @ w).sum())(x)\n", x="f32[64,64]"
    ),
    "matmul on ampere": Program("def f(x):\n    return x @ x\n", "cuda:a100", "bf16[256,256]"),
    "scan": Program(
        "def f(x):\n"
        "    def body(c, t):\n"
        "        return jnp.fft.fft(c + t).real, c.sum()\n"
        "    return jax.lax.scan(body, x, jnp.arange(7.0))\n"
    ),
    "while": Program(
        "def f(x):\n    return jax.lax.while_loop(lambda x: x[0, 0] < 9, lambda x: x @ x, x)\n",
        x="f32[64,64]",
    ),
    "fft": Program("def f(x):\n    return jnp.fft.fft(x, axis=0)\n", x="c64[64,32]"),
    "decomposition": Program("def f(x):\n    return jnp.linalg.qr(x)\n", x="f32[32,16]"),
    "folded": Program("def f(x):\n    return x + jnp.sort(jnp.arange(64.0))\n"),
}


@pytest.fixture(scope="module")
def both() -> Callable[[str], Both]:
    """Both answers to each program."""

    async def compiled() -> dict[str, Both]:
        environment = environments.suiting("cuda", jax.__version__)
        assert environment is not None, "`jaxsight targets install cuda` gets the compiler"
        compilers = Compilers(memory=8 * 2**30, deadline=240)
        try:
            answers = {}
            for name, program in {**PROGRAMS, **OTHERS}.items():
                target = parse(program.target)
                held = lowered(program).request
                request = Compile(
                    0,
                    target.name,
                    held.program,
                    constants=held.constants,
                    barriers=held.barriers,
                    trips=held.trips,
                )
                early = replace(request, complete=False)
                answers[name] = (
                    await compilers.compile(target, environment, early),
                    await compilers.compile(target, environment, request),
                )
            return answers
        finally:
            await compilers.aclose()

    answers = asyncio.run(compiled())
    return answers.__getitem__


def without_lines(graph: Graph) -> Graph:
    """Frames of JAX may take other lines of the text."""
    kernels = tuple(replace(kernel, instruction=0) for kernel in graph.kernels)
    return replace(graph, kernels=kernels)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")


def is_pallas(name: str) -> bool:
    """Whether a program calls kernels of Pallas."""
    source = {**PROGRAMS, **OTHERS}[name].source
    return "pallas_call" in source or "plgpu." in source


COMPILED = [
    name
    for name in (*PROGRAMS, *OTHERS)
    if name not in ("attention on volta", "triton on volta", "mosaic on ada")
]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
def test_kernels_are_those_of_the_complete_compile(both: Callable[[str], Both], name: str) -> None:
    early, complete = both(name)
    assert isinstance(early, Compiled), early
    assert isinstance(complete, Compiled), complete
    assert without_lines(early.graph) == without_lines(complete.graph)
    assert early.aliases == complete.aliases
    assert early.flops == complete.flops
    assert set(early.notes) <= set(complete.notes)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in COMPILED if not is_pallas(name)])
def test_memory_is_known_before_code_is_generated(both: Callable[[str], Both], name: str) -> None:
    early, complete = both(name)
    assert isinstance(early, Compiled), early
    assert isinstance(complete, Compiled), complete
    assert (early.is_complete, complete.is_complete) == (False, True)
    assert early.temporaries == complete.temporaries >= 0
    assert early.memory == replace(complete.memory, code=-1, peak=-1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if is_pallas(name)])
def test_kernels_of_pallas_are_compiled_completely(both: Callable[[str], Both], name: str) -> None:
    early, complete = both(name)
    if isinstance(complete, Trouble):
        assert early == complete
    else:
        assert isinstance(early, Compiled), early
        assert early.is_complete


@pytest.mark.slow
def test_an_emitter_that_fails_is_left_out_of_both(both: Callable[[str], Both]) -> None:
    early, complete = both("resize")
    assert isinstance(early, Compiled), early
    assert isinstance(complete, Compiled), complete
    assert early.notes == complete.notes


@pytest.mark.slow
def test_no_dump_stays_in_the_folder_of_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    async def compiled() -> tuple[Compiled | Trouble, list[Path]]:
        environment = environments.suiting("cuda", jax.__version__)
        assert environment is not None, "`jaxsight targets install cuda` gets the compiler"
        compilers = Compilers(memory=8 * 2**30, deadline=240)
        try:
            program = lowered(OTHERS["elementwise"]).request.program
            request = Compile(0, "cuda:h100", program, complete=False)
            answer = await compilers.compile(parse("cuda:h100"), environment, request)
            return answer, dumps()
        finally:
            await compilers.aclose()

    def dumps() -> list[Path]:
        return [*tmp_path.rglob("*optimizations*")]

    answer, found = asyncio.run(compiled())
    assert isinstance(answer, Compiled)
    assert found == []
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("target", "jax", "early"),
    [
        ("cuda:h100", "0.10.2", True),
        ("cuda:h100", "0.10.1", False),
        ("cuda", "0.12.0.1", False),
        ("ssh://lab/cuda:h100", "0.12.0.1", False),
        ("tpu:v5e", "0.12.0.1", False),
    ],
)
def test_only_gpus_that_are_not_here_end_early(target: str, jax: str, early: bool) -> None:
    assert ends_early(parse(target), CompilerEnvironment("cuda", "python", jax)) is early
