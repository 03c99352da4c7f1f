"""Contracts and rules where autotuning on a GPU that is not present decides: they use upper ends."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jaxsight.rules.jx423_device_memory import rule as jx423_device_memory
from jaxsight.targets.target import parse
from jaxsight.wire.kernel_graph import Graph, Kernel, Value
from jaxsight.wire.kernel_work import Undecided
from jaxsight.wire.messages.compiling import AHEAD_OF_TIME, Compiled, Memory
from tests.quiet import QUIET
from tests.sessions import session_without_spare

GIB = 2**30

SOURCE = '''\
import jax
import jax.numpy as jnp


def product(a, b):
    """
    Example inputs:
        a: f32[256, 128]
        b: f32[128, 256]
    Expect (h100): temp <= 1 MiB
    Expect (h100): temp <= 33 MiB
    Expect (h100): temp <= 34 MiB
    Expect (h100): kernels <= 2, launches <= 2
    """
    return a @ b


def transformed(x):
    """
    Example inputs:
        x: c64[8, 1024]
    Expect (h100): launches <= 4
    Expect (h100): launches >= 1
    """
    return jnp.fft.fft(x)


def convolved(x, w):
    """
    Example inputs:
        x: f32[8, 16, 16, 32]
        w: f32[3, 3, 32, 32]
    Expect (h100): temp <= 1 GiB
    """
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=numbers)


def hidden(x, w1, w2):
    """
    Example inputs:
        x: f32[8192, 64]
        w1: f32[64, 4096]
        w2: f32[4096, 64]
    """
    return jnp.tanh(x @ w1) @ w2
'''


@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
async def test_contracts_and_rules_use_the_upper_end(tmp_path: Path) -> None:
    session = session_without_spare()
    try:
        settings = {**QUIET, "python": sys.executable, "target": "cuda:h100"}
        session.configure([str(tmp_path)], settings)
        session.open(str(tmp_path / "tuned.py"), SOURCE)
        findings = (await session.report(str(tmp_path / "tuned.py"), kernels=True)).reported
    finally:
        await session.aclose()
    broken = [(each.message, each.notes) for each in findings if each.code == "JX501"]
    (product, exact, launches, convolved) = broken
    assert product[0] == "expected temp <= 1 MiB on h100, got up to 33 MiB"
    assert exact[0] == "expected temp <= 33 MiB on h100, got up to 34,603,264 B"
    assert product[1] == ("up to 32 MiB of it depends on the device",)
    assert launches[0] == "expected launches <= 4 on h100, got at least 1"
    assert "launches an unknown number of kernels" in launches[1][0]
    assert convolved[0].startswith("expected temp <= 1 GiB on h100, got at least ")
    assert convolved[1] == ("cuDNN chooses its workspace on the device",)
    (peak,) = [each for each in findings if each.code == "JX409"]
    assert peak.message.startswith("peak memory is up to ")
    assert any(note.endswith("of it depends on the device") for note in peak.notes)


@pytest.mark.parametrize(
    ("scratch", "message"),
    [
        (0, None),
        (4 * GIB, None),
        (64 * GIB, "needs up to 84 GiB, NVIDIA H100 80GB HBM3 has 79.1 GiB"),
    ],
)
def test_memory_of_the_device_with_what_autotuning_may_add(
    scratch: int, message: str | None
) -> None:
    value = Value("f32[2684354560]", "0", 10 * GIB)
    matmul = Kernel(
        "matmul", "triton", "Triton matmul", "matmul", (), outputs=(value,),
        undecided=Undecided("cuBLAS", calls=0, workspace=32 << 20, buffers=scratch - (32 << 20))
        if scratch else None,
    )  # fmt: skip
    graph = Graph("m", (matmul,), parameters=(value,), outputs=(value,))
    memory = Memory(temporaries=0, arguments=10 * GIB, outputs=10 * GIB, aliased=0)
    compiled = Compiled(1, "cuda:h100", AHEAD_OF_TIME, graph, memory, "", 1.0)
    view: Any = SimpleNamespace(on_target=compiled, target=parse("cuda:h100"))
    messages = [violation.message for violation in jx423_device_memory.find(view)]
    assert messages == ([] if message is None else [message])
