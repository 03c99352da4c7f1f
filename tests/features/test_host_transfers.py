"""Transfers between host and device, as they are shown of a function that offloads a residual."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.kernels.table import record as figures
from jaxsight.features.kernels.table import table
from jaxsight.features.named_function import compiled_function
from jaxsight.figures.program_notes import memory_lines
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.session import Session
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 2**20
MODEL = '''\
import jax
import jax.numpy as jnp


def update(w, m, g):
    """
    Example inputs:
        w: f32[N, N]
        m: f32<host>[N, N]
        g: f32[N, N]
        where N=512
    Expect: host-transfers == 2, host-moved <= 1 MiB
    """
    m = 0.9 * jax.device_put(m, jax.memory.Space.Device) + g
    jax.debug.callback(print, m[0, 0])
    return w - 0.1 * m, jax.device_put(m, jax.memory.Space.Host)
'''


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("project") / "model.py")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(path: str) -> AsyncIterator[Session]:
    session = session_without_spare()
    session.configure([str(Path(path).parent)], {"python": sys.executable, "target": "cuda:h100"})
    session.open(path, MODEL)
    yield session
    await session.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def update(session: Session, path: str) -> LocatedFigures:
    found = (await compiled_function(session.engine, path, "update", complete=True))[1]
    assert isinstance(found, LocatedFigures)
    return found


async def test_the_headline_has_number_and_bytes(update: LocatedFigures) -> None:
    head = update.headline
    assert " · 1 host callback · 2 host transfers, 2 MiB · temp " in head


async def test_a_line_has_link_and_time_of_each_direction(update: LocatedFigures) -> None:
    to_host, to_device, memory = memory_lines(update)
    assert to_host.startswith("to host: 2 transfers, 1 MiB, ≥ 16.6 µs over PCIe 5 ×16 (63 GB/s), ")
    assert to_device.startswith("to device: 1 transfer, 1 MiB, ≥ 16.6 µs over PCIe 5 ×16 (63 GB/s)")
    assert memory == "host memory: 1 MiB arguments, 1 MiB outputs"


async def test_the_table_lists_all_with_their_lines(update: LocatedFigures) -> None:
    shown = table(update)
    assert "| host transfer | bytes | ≥ time |  | lines |" in shown
    (row,) = (line for line in shown.split("\n") if "to device copy" in line)
    assert "| 1 MiB | 16\\.6 µs |" in row
    assert row.endswith("| 14 |")
    assert "layout change" not in shown


async def test_json_has_every_transfer_and_the_memory_of_the_host(update: LocatedFigures) -> None:
    record = figures(update, "update")
    transfers = record["host_transfers"]
    assert isinstance(transfers, list)
    assert sorted((each["direction"], each["what"], each["bytes"]) for each in transfers) == [
        ("to device", "copy", MIB),
        ("to host", "callback", 4),
        ("to host", "copy", MIB),
    ]
    assert (record["host_argument_bytes"], record["host_output_bytes"]) == (MIB, MIB)
    assert record["host_bytes"] == 2 * MIB + 4
    assert record["host_link"] == {"name": "PCIe 5 ×16", "bandwidth": 63e9}
    assert record["estimate_is_lower_bound"] is True


async def test_a_contract_limits_what_moves(session: Session, path: str) -> None:
    (broken,) = [each for each in (await session.report(path)).reported if each.code == "JX501"]
    assert broken.message == "expected host-moved <= 1 MiB on h100, got 2 MiB"
    assert set(broken.notes) == {
        "to device f32[512,512] 1 MiB at line 14",
        "to host f32[512,512] 1 MiB at line 16",
    }


async def test_a_line_ends_with_what_it_moves(session: Session, path: str) -> None:
    hints = await session.hints(path, wait=True)
    labels = {hint.range.start.line + 1: hint.label for hint in hints if "⇅" in hint.label}
    assert labels == {14: "⇅ to device 1 MiB", 16: "⇅ to host 1 MiB"}


async def test_documents_have_the_transfers(session: Session, path: str) -> None:
    listed = await session.show(path, "update", "kernels")
    assert "⇅ copy to host f32[512,512] 1 MiB, ≥ 16.6 µs over PCIe 5 ×16 (63 GB/s)" in listed.text
    hlo = await session.show(path, "update", "hlo")
    assert "// ⇅ to device f32[512,512] 1 MiB" in hlo.text


async def test_an_argument_on_the_host_has_its_memory_in_its_type(
    session: Session, path: str
) -> None:
    jaxpr = await session.show(path, "update", "jaxpr")
    assert "f32<host>[512,512]" in jaxpr.text
