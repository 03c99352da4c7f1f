"""Compilers for this machine's CPU: what they compile without importing JAX, and how much memory
they keep while they are idle.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import pytest
import pytest_asyncio

from jaxsight.targets.target import parse
from jaxsight.wire.meshes import ONE_DEVICE, Distribution
from jaxsight.wire.messages.compiling import Compile, Compiled
from jaxsight.workers.compilation.compilers import Compilers
from jaxsight.workers.compilation.environments import CompilerEnvironment
from tests.compiler.programs import program

HERE = CompilerEnvironment("here", sys.executable, jaxlib.__version__)

CONFIGURED = "JAX_LOG_COMPILES"
"""A variable that configures JAX, but changes nothing that is compiled."""

MATRIX = jax.ShapeDtypeStruct((64, 64), "float32")

PROGRAMS: list[Callable[[Any], Any]] = [
    jnp.linalg.cholesky,
    jnp.linalg.eigvals,
    lambda x: jax.random.normal(jax.random.key(0), x.shape) @ jnp.fft.fft(x),
    lambda x: jax.lax.scan(lambda total, row: (total + row, jnp.sort(row)), x[0], x),
    jax.grad(lambda x: jax.nn.softmax(x @ x.T).sum()),
]


async def compiled(compilers: Compilers, function: Callable[[Any], Any]) -> Compiled:
    request = Compile(0, "cpu", program(function, MATRIX), options=(("xla_cpu_max_isa", "AVX2"),))
    found = await compilers.compile(parse("cpu"), HERE, request)
    assert isinstance(found, Compiled), found
    return replace(found, id=0, seconds=0.0)


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Callable[[], Compilers]]:
    made: list[Compilers] = []

    def start() -> Compilers:
        made.append(Compilers(memory=4 * 2**30, deadline=60))
        return made[-1]

    yield start
    for each in made:
        await each.aclose()


async def test_jaxlib_alone_compiles_to_what_jax_compiles_to(
    start: Callable[[], Compilers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONFIGURED, raising=False)
    alone = start()
    without = [await compiled(alone, function) for function in PROGRAMS]
    monkeypatch.setenv(CONFIGURED, "0")
    with_jax = start()
    assert [await compiled(with_jax, function) for function in PROGRAMS] == without


PRINTS = """
import sys
from jaxsight.compiler.compat import xla
xla.local("cpu")
print(xla.is_default(), "jax" in sys.modules)
"""


def imported(**variables: str) -> str:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-c", PRINTS],
        env={**plain, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("variables", "printed"),
    [
        ({}, "True False"),
        ({"JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"}, "True False"),
        ({"JAX_OPTIMIZATION_LEVEL": "O1"}, "False True"),
        ({"JAX_PLATFORMS": "cpu,cuda"}, "False True"),
        ({"JAX_COMPILATION_CACHE_DIR": "/nowhere"}, "False True"),
    ],
)
def test_jax_is_imported_where_it_is_configured(variables: dict[str, str], printed: str) -> None:
    assert imported(**variables) == printed


@pytest.mark.parametrize(
    "distribution", [ONE_DEVICE, Distribution(4, free_inputs=(True, False), free_outputs=(True,))]
)
def test_the_options_are_those_of_jax(distribution: Distribution) -> None:
    from jaxsight.compiler.compat import jaxlib_alone, with_jax

    overrides = {"xla_disable_hlo_passes": "constant_folding", "xla_cpu_enable_fast_math": False}
    devices = with_jax.devices("cpu", distribution.devices)
    alone, whole = (
        module.options(devices, overrides, distribution).SerializeAsString()
        for module in (jaxlib_alone, with_jax)
    )
    assert alone == whole


GROWS = """
import os
from jaxsight.compiler.serve import IdleMemory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

memory = IdleMemory()
memory.release()
arrays = [bytearray(b"x" * 2000) for _ in range(50_000)]
kept = arrays[::100]
del arrays
before = resident()
memory.release()
print(before - resident())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc keeps what is free")
def test_free_memory_is_released() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWS],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) > 60
