"""Which accelerator a machine has, from files, and what JAX's variables and plugins make of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jaxsight.targets.chips import GPUS, chip_of_kind
from jaxsight.targets.own import busy, devices, plugins
from jaxsight.targets.own.devices import OwnDevice, own_device
from jaxsight.targets.target import parse, recognized
from jaxsight.workers.compilation import default_target
from jaxsight.workers.compilation.default_target import default_target as chosen
from tests.targets.machines import H100, amd, nvidia, tpu

A100, PCIE = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 PCIe"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of a machine without accelerators and compilers."""
    monkeypatch.setattr(devices, "ROOT", tmp_path)
    monkeypatch.setenv("JAXSIGHT_COMPILERS", str(tmp_path / "none"))
    default_target.look_again()
    return tmp_path


def nodes_alone(root: Path) -> None:
    (root / "dev").mkdir()
    for name in ("nvidia0", "nvidiactl", "nvidia-uvm"):
        (root / "dev" / name).touch()


def windows(root: Path) -> None:
    for path in (root / "dev/dxg", root / "usr/lib/wsl/lib/libcuda.so.1"):
        path.parent.mkdir(parents=True)
        path.touch()


Machine = Callable[[Path], None]


@pytest.mark.parametrize(
    ("machine", "variables", "platform", "kind", "hidden"),
    [
        (lambda root: nvidia(root, H100), {}, "cuda", H100, ""),
        (lambda root: nvidia(root, H100, H100), {}, "cuda", H100, ""),
        (lambda root: nvidia(root, H100), {"JAX_PLATFORMS": "gpu,cpu"}, "cuda", H100, ""),
        (lambda root: nvidia(root, H100), {"JAX_PLATFORMS": ""}, "cuda", H100, ""),
        (
            lambda root: nvidia(root, H100),
            {"JAX_PLATFORMS": "cpu"},
            "cuda",
            H100,
            "JAX_PLATFORMS=cpu",
        ),
        (
            lambda root: nvidia(root, H100),
            {"CUDA_VISIBLE_DEVICES": ""},
            "cuda",
            H100,
            "CUDA_VISIBLE_DEVICES=",
        ),
        (
            lambda root: nvidia(root, H100),
            {"CUDA_VISIBLE_DEVICES": "-1"},
            "cuda",
            H100,
            "CUDA_VISIBLE_DEVICES=-1",
        ),
        (lambda root: nvidia(root, A100, H100), {"CUDA_VISIBLE_DEVICES": "1"}, "cuda", H100, ""),
        (
            lambda root: nvidia(root, A100, H100),
            {"CUDA_VISIBLE_DEVICES": "GPU-1c4f"},
            "cuda",
            H100,
            "",
        ),
        # CUDA numbers the fastest one first, which files do not say.
        (lambda root: nvidia(root, A100, H100), {}, "cuda", "", ""),
        (
            lambda root: nvidia(root, A100, H100),
            {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            "cuda",
            A100,
            "",
        ),
        (lambda root: nvidia(root, H100), {"CUDA_VISIBLE_DEVICES": "MIG-77"}, "cuda", "", ""),
        (nodes_alone, {}, "cuda", "", ""),
        (windows, {}, "cuda", "", ""),
        (lambda root: amd(root, "AMD Instinct MI300X"), {}, "rocm", "AMD Instinct MI300X", ""),
        (
            lambda root: amd(root, "AMD Instinct MI300X"),
            {"HIP_VISIBLE_DEVICES": ""},
            "rocm",
            "AMD Instinct MI300X",
            "HIP_VISIBLE_DEVICES=",
        ),
        (lambda root: tpu(root, "0x0063"), {}, "tpu", "TPU v5 lite", ""),
    ],
)
def test_a_device_is_found_by_its_files(
    root: Path,
    machine: Machine,
    variables: dict[str, str],
    platform: str,
    kind: str,
    hidden: str,
) -> None:
    machine(root)
    assert own_device(platform, variables) == OwnDevice(platform, kind, hidden)
    others = {"cuda", "rocm", "tpu"} - {platform}
    assert [own_device(other, variables) for other in others] == [None, None]


def test_a_container_without_the_device_has_none(root: Path) -> None:
    nvidia(root, H100, nodes=False)
    assert own_device("cuda", {}) is None


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\0", b"Model\n:\n\n: :", b"Model: x\n" * 90_000]
)
def test_files_of_a_driver_may_have_any_content(root: Path, content: bytes) -> None:
    nvidia(root, H100)
    next(root.glob("proc/driver/nvidia/gpus/*/information")).write_bytes(content)
    amd_properties = root / "sys/class/kfd/kfd/topology/nodes/0/properties"
    amd_properties.parent.mkdir(parents=True)
    amd_properties.write_bytes(content)
    for platform in ("cuda", "rocm", "tpu"):
        own_device(platform, {})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (H100, "h100"),
        (A100, "a100"),
        ("A100-SXM4-80GB", "a100"),
        ("NVIDIA H200", "h200"),
        ("Tesla T4", "t4"),
        ("NVIDIA L4", "l4"),
        ("TPU v5 lite", "v5e"),
        ("TPU v5", "v5p"),
        ("TPU v6 lite", "v6e"),
        (PCIE, None),
        ("NVIDIA H100 NVL", None),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None),
        ("NVIDIA A100-SXM4-40GB", None),
        ("NVIDIA A100 80GB PCIe", None),
        ("NVIDIA A10G", None),
        ("AMD Instinct MI300X", None),
        ("cpu", None),
        ("", None),
    ],
)
def test_a_chip_with_other_figures_is_not_recognized(kind: str, name: str | None) -> None:
    chip = chip_of_kind(kind)
    assert (chip.name if chip is not None else None) == name


def test_every_gpu_is_recognized_by_its_title() -> None:
    assert [chip_of_kind(gpu.title) for gpu in GPUS.values()] == list(GPUS.values())


def test_an_own_target_keeps_its_name_and_says_what_it_is() -> None:
    own = recognized(parse("cuda"), H100)
    assert (own.name, own.short, own.title) == ("cuda", "cuda", f"this machine's {H100}")
    assert (own.capability, own.instead) == ("9.0", "cuda:h100")
    assert own == parse("cuda")
    eight = recognized(parse("ssh://lab/cuda:8"), PCIE)
    assert (eight.short, eight.title) == ("cuda:8@lab", f"the {PCIE} of lab")
    assert eight.chip is None
    assert eight.facts == (f"no estimates: figures of {PCIE} are not known",)
    absent = parse("cuda:h100")
    assert recognized(absent, "NVIDIA H200") is absent


@pytest.mark.parametrize(
    ("machine", "variables", "installed", "target", "why"),
    [
        (lambda root: nvidia(root, H100), {}, ("cuda",), "cuda", "JAX uses it on this machine"),
        (lambda root: tpu(root, "0x0063"), {}, ("tpu",), "tpu", "JAX uses it on this machine"),
        (
            lambda root: nvidia(root, H100),
            {},
            (),
            "cpu",
            (
                "JAX has no plugin for this machine's NVIDIA H100 80GB HBM3: "
                "`pip install jax[cuda13]`, and no compiler installed for absent ones"
            ),
        ),
        (
            lambda root: nvidia(root, H100),
            {"JAX_PLATFORMS": "cpu"},
            ("cuda",),
            "cpu",
            (
                "JAX_PLATFORMS=cpu hides this machine's NVIDIA H100 80GB HBM3, and no compiler "
                "installed for absent ones"
            ),
        ),
        (
            lambda root: None,
            {},
            ("cuda",),
            "cpu",
            "no GPU or TPU found on this machine, and no compiler installed for absent ones",
        ),
    ],
)
def test_the_default_target_is_the_users_own_device(
    root: Path,
    machine: Machine,
    variables: dict[str, str],
    installed: tuple[str, ...],
    target: str,
    why: str,
) -> None:
    machine(root)
    found = chosen("0.10.2", installed, variables)
    assert (found.name, found.why_default) == (target, why)


@pytest.mark.parametrize(
    ("packages", "found"),
    [
        (["jax_plugins/xla_cuda13/__init__.py", "jax_plugins/xla_cuda12"], ["cuda"]),
        (["jax_plugins/xla_rocm7/__init__.py", "libtpu/__init__.py"], ["rocm", "tpu"]),
        (["jax_plugins/xla_other/__init__.py"], []),
        (["jax_plugins.py"], []),
        ([], []),
    ],
)
def test_plugins_are_those_that_a_python_finds(
    tmp_path: Path, packages: list[str], found: list[str]
) -> None:
    for package in packages:
        file = tmp_path / package
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    metadata = tmp_path / "jax-0.10.2.dist-info/METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.10.2\n")
    done = subprocess.run(
        [sys.executable, "-S", str(plugins.__file__)],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout) == {"jax": "0.10.2", "plugins": found}


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (
            (
                "INTERNAL: failed initializing StreamExecutor for CUDA device ordinal 0: INTERNAL: "
                "failed call to cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: out of memory; "
                "total memory reported: 34089730048"
            ),
            "has too little free memory to compile",
        ),
        (
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6291456 bytes.",
            "has too little free memory to compile",
        ),
        (
            (
                "RESOURCE_EXHAUSTED: Failed to allocate request for 176.00MiB (184549376B) on device "
                "ordinal 0"
            ),
            "has too little free memory to compile",
        ),
        (
            "CUDA_ERROR_DEVICE_UNAVAILABLE: CUDA-capable device(s) is/are busy or unavailable",
            "is in use by another process",
        ),
        (
            (
                "ABORTED: The TPU is already in use by process with pid 176028. Not attempting to "
                "load libtpu.so in this process."
            ),
            "is in use by process 176028",
        ),
        ("RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 73728", ""),
        ("RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem", ""),
        ("INTERNAL: Failed to open libtpu.so: libtpu.so: cannot open shared object file", ""),
    ],
)
def test_a_device_that_is_full_or_in_use_is_named(message: str, problem: str) -> None:
    assert busy.problem(message) == problem
    if problem:
        told = busy.explained(problem, recognized(parse("cuda"), H100))
        assert told.startswith(f"this machine's {H100} {problem}; ")
        assert told.endswith("choose cuda:h100, which needs no device")
