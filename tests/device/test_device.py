"""The comparison with a device: on this machine's CPU for real, and with stored measurements."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.device.cases import LARGE, cases
from tools.device.comparison import Compared, totals

ROOT = Path(__file__).parents[2]
STORED = LARGE.with_name("large_h100.json")

PROGRAMS = '''\
import jax
import jax.numpy as jnp


def softmax(x):
    """
    Example inputs:
        x: f32[64, 256]
    """
    return jax.nn.softmax(x)


def loop(x, n):
    """
    Example inputs:
        x: f32[32, 32]
        n: i32[]
    """
    return jax.lax.fori_loop(0, 10, lambda i, x: jnp.sin(x @ x) + n, x)


def untraceable(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x if x.sum() > 0 else -x


def without_inputs(x):
    return x
'''


def compared(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    return subprocess.run(
        [sys.executable, "-m", "tools.device", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "server"), **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_programs_are_compiled_run_profiled_and_compared(tmp_path: Path) -> None:
    file, results = tmp_path / "programs.py", tmp_path / "results.json"
    file.write_text(PROGRAMS)
    done = compared(str(file), "--target", "cpu", "--json", str(results), "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 kernels\n2 of 2 launches\n2 of 2 temporaries\n" in done.stdout
    assert done.stdout.endswith("\n1 cannot be compared\n")
    found = json.loads(results.read_text())
    assert "TracerBoolConversionError" in found["untraceable"]["device"]["refused"]
    assert "TracerBoolConversionError" in found["untraceable"]["ahead_of_time"]["refused"]
    for name in ("softmax", "loop"):
        device = found[name]["device"]
        assert device["kind"] == "cpu"
        assert device["device_us"] > 0
        assert device["gpu_events"] == sum(count for _, count, _ in device["by_kernel"])
    # Each turn of the loop is in the profile.
    assert found["loop"]["device"]["gpu_events"] > 20
    assert found["loop"]["ahead_of_time"]["launches"] == found["loop"]["device"]["gpu_events"]


@pytest.mark.slow
def test_a_program_that_ends_its_process_costs_no_other(tmp_path: Path) -> None:
    file, results = tmp_path / "programs.py", tmp_path / "results.json"
    dying = PROGRAMS.replace("return x if x.sum() > 0 else -x", "import os; os._exit(7)")
    file.write_text(dying)
    done = compared(str(file), "--target", "cpu", "--json", str(results), "--jobs", "1")
    assert done.returncode == 0, done.stderr
    records = json.loads(results.read_text())
    refused = {
        name: sides
        for name, record in records.items()
        if (sides := {side: each["refused"] for side, each in record.items() if "refused" in each})
    }
    died = "the process exited with status 7"
    assert refused == {"untraceable": {"device": died, "ahead_of_time": died}}
    assert "2 of 2 kernels\n" in done.stdout


def test_figures_ahead_of_time_are_compared_with_stored_ones() -> None:
    names = ("matmul_bf16_small", "softmax_rows")
    done = compared("--against", str(STORED), "--only", *names, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "cuda:h100 ahead of time, NVIDIA H100 80GB HBM3 measured" in done.stdout
    assert "2 of 2 kernels\n2 of 2 launches\n2 of 2 temporaries\n" in done.stdout
    assert "1 of 1 programs above 20 µs have an estimate: 1 within 1.3x" in done.stdout


def test_a_machine_without_a_device_says_so() -> None:
    done = compared(JAX_PLATFORMS="cpu")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "no GPU or TPU found here: use --target cpu, or --against FILE\n"


def test_every_stored_measurement_has_its_program() -> None:
    stored = json.loads(STORED.read_text())
    assert [case.name for case in cases([LARGE])] == list(stored)
    programs = [
        Compared(name, record["ahead_of_time"], record["device"]) for name, record in stored.items()
    ]
    assert not any(each.refused for each in programs)
    # The figures of the day of the measurement, without ranges.
    assert totals(programs).splitlines()[0] == "45 of 54 kernels"


def test_ranges_hold_what_is_within_them() -> None:
    device = {"kernels": 2, "gpu_events": 9.0, "temp_bytes": 300, "device_us": 50.0}
    ahead = {"kernels": 2, "launches": 3, "temp_bytes": 256, "estimate_us": 25.0}
    exact = Compared("f", ahead, device)
    assert (exact.has_kernels, exact.has_launches, exact.has_temp) == (True, False, False)
    ranged = {**ahead, "temp_bytes_at_most": 512, "launches_at_most": None}
    within = Compared("f", ranged, device)
    assert (within.has_launches, within.has_temp, within.ratio) == (True, True, 2.0)
