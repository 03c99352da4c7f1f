"""A machine with a GPU, from the question to what is shown: processes are real, the GPU is not."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from jaxsight.events import FileStatus
from jaxsight.features.named_function import compiled_function
from jaxsight.figures.summary import origin
from jaxsight.projects.projects import Projects
from jaxsight.queries.programs.located_figures import LocatedFigures, Refused
from jaxsight.session import Session
from jaxsight.targets.chips import GPUS
from jaxsight.targets.roofline import total
from jaxsight.trust import Policy, Trust
from jaxsight.workers.compilation import environments
from tests.targets.machines import H100, simulate_gpu

SERVER = Path(__file__).parents[2] / "server"

SOURCE = '''\
import jax.numpy as jnp


def product(x, y):
    """
    Example inputs:
        x, y: bf16[2048, 2048]
    """
    return jnp.tanh(x @ y)


def large(x):
    """
    Example inputs:
        x: f32[160000, 160000]
    """
    return jnp.sin(x) + 1
'''

Opened = Callable[..., AbstractAsyncContextManager[tuple[Session, str]]]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Open the source in a session with a Python."""

    @asynccontextmanager
    async def of(python: str, source: str = SOURCE) -> AsyncIterator[tuple[Session, str]]:
        session = Session(Projects(Trust(Policy.ALWAYS)))
        session.configure([str(tmp_path)], {"python": python})
        path = str(tmp_path / "model.py")
        session.open(path, source)
        try:
            yield session, path
        finally:
            await session.aclose()

    return of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "machine"
    folder.mkdir()
    return folder


async def test_the_own_gpu_is_the_default_and_has_its_chips_figures(
    opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = simulate_gpu(root, GPUS["h100"].specification(), monkeypatch)
    async with opened(python) as (session, path):
        kernels = (await compiled_function(session.engine, path, "product", complete=True))[1]
        assert isinstance(kernels, LocatedFigures)
        assert (kernels.target.name, kernels.target.chip) == ("cuda", GPUS["h100"])
        assert (kernels.compiled.how, kernels.compiled.device_kind) == ("device", H100)
        assert origin(kernels.compiled, kernels.target) == (
            f"this machine's {H100}, compiled on the device"
        )
        estimated = total(kernels.graph, kernels.target)
        assert estimated is not None
        assert 1e-5 < estimated.seconds < 1e-4
        hints = [hint for hint in await session.hints(path, wait=True) if "▣" in hint.label]
        assert hints[0].label.endswith("· cuda")
        assert f"this machine's {H100}, compiled on the device" in hints[0].tooltip
        assert "default target: JAX uses it on this machine" in hints[0].tooltip
        findings = (await session.report(path, kernels=True)).reported
        assert "JX423" in {finding.code for finding in findings}
        offers = {offer.target: offer for offer in (await session.offers(path)).targets}
        assert (offers["cuda"].title, offers["cuda"].active) == (f"this machine's {H100}", True)
        assert offers["cuda"].figures == offers["cuda:h100"].figures
        async with asyncio.timeout(60):
            while not isinstance(last := await session.events.get(), FileStatus) or (
                last.target != "cuda"
            ):
                pass
        assert last.target_title == (
            f"this machine's {H100}; default target: JAX uses it on this machine"
        )


async def test_a_device_without_known_figures_has_no_estimate(
    opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pcie = "NVIDIA H100 PCIe"
    described = GPUS["h100"].specification(pcie)
    python = simulate_gpu(root, described, monkeypatch, pcie)
    async with opened(python) as (session, path):
        kernels = (await compiled_function(session.engine, path, "product", complete=True))[1]
        assert isinstance(kernels, LocatedFigures)
        assert total(kernels.graph, kernels.target) is None
        assert kernels.target.facts[-1] == f"no estimates: figures of {pcie} are not known"


async def test_a_full_device_is_named_and_tried_again(
    opened: Opened, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = simulate_gpu(root, GPUS["h100"].specification(), monkeypatch)
    monkeypatch.setenv("SIMULATED_ERROR", "INTERNAL: CUDA_ERROR_OUT_OF_MEMORY: out of memory")
    source = SOURCE.replace("2048", "1024")  # results of the other are on disk
    async with opened(python, source) as (session, path):
        _, refused = await compiled_function(session.engine, path, "product", complete=True)
        assert isinstance(refused, Refused)
        assert refused.trouble.message == (
            f"this machine's {H100} has too little free memory to compile; wait until it is free, "
            "or choose cuda:h100, which needs no device"
        )
        monkeypatch.delenv("SIMULATED_ERROR")
        assert isinstance(
            (await compiled_function(session.engine, path, "product", complete=True))[1],
            LocatedFigures,
        )


def test_a_python_with_the_plugin_needs_no_other_compiler(tmp_path: Path) -> None:
    compiler = next(iter(environments.installed("cuda")), None)
    assert compiler is not None
    code = (
        "import jax, jaxsight; x = jax.ShapeDtypeStruct((512, 512), 'float32')\n"
        "print(jaxsight.kernels(lambda x: x @ x, target='cuda:h100')(x))"
    )
    done = subprocess.run(
        [compiler.python, "-c", code],
        env={
            **os.environ,
            "JAXSIGHT_COMPILERS": str(tmp_path),
            "PYTHONPATH": str(SERVER),
            "JAX_PLATFORMS": "cpu",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "compiled ahead of time (no device)" in done.stdout, done.stderr
