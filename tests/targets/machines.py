"""Machines with accelerators: the files of their drivers, and a GPU that compiles as an H100."""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxsight.compiler import stand_ins
from jaxsight.targets.own import devices
from jaxsight.workers.compilation import default_target, environments

H100 = "NVIDIA H100 80GB HBM3"


def nvidia(root: Path, *models: str, nodes: bool = True) -> None:
    """Write what NVIDIA's driver shows of GPUs; without `nodes`, as a container without them has."""
    (root / "dev").mkdir(exist_ok=True)
    for index, model in enumerate(models):
        folder = root / "proc/driver/nvidia/gpus" / f"0000:{index + 10:02x}:00.0"
        folder.mkdir(parents=True)
        (folder / "information").write_text(
            f"Model: \t\t {model}\nIRQ:   \t\t 48\nGPU UUID: \t GPU-{index}c4f-11aa\n"
            f"Bus Location: \t 0000:0a:00.0\nDevice Minor: \t {index}\n"
        )
        if nodes:
            (root / f"dev/nvidia{index}").touch()
    (root / "dev/nvidiactl").touch()


def amd(root: Path, *products: str) -> None:
    """Write what `amdkfd` and `amdgpu` show of a processor and GPUs."""
    (root / "dev").mkdir()
    (root / "dev/kfd").touch()
    for index in range(len(products) + 1):
        node = root / f"sys/class/kfd/kfd/topology/nodes/{index}"
        node.mkdir(parents=True)
        simds, vendor = (1216, 4098) if index else (0, 0)
        (node / "properties").write_text(
            f"cpu_cores_count 0\nsimd_count {simds}\nvendor_id {vendor}\n"
        )
    for index, product in enumerate(products):
        bus = root / f"sys/bus/pci/drivers/amdgpu/0000:{index + 5:02x}:00.0"
        bus.mkdir(parents=True)
        (bus / "product_name").write_text(f"{product}\n")


def tpu(root: Path, device: str) -> None:
    """Write what the bus shows of a TPU, with a PCI device such as `0x0063`."""
    (root / "dev").mkdir()
    (root / "dev/accel0").touch()
    bus = root / "sys/bus/pci/devices/0000:00:04.0"
    bus.mkdir(parents=True)
    (bus / "vendor").write_text("0x1ae0\n")
    (bus / "device").write_text(f"{device}\n")


_PLUGIN = '''\
"""A GPU that compiles as an H100, for JAX: its `cuda` backend has the device of a description."""

import os

from jax._src import hardware_utils, xla_bridge
from jax.experimental import topologies

initialized = xla_bridge._init_backend


class Client:
    platform, platform_version = "gpu", "simulated"

    def devices(self):
        make = topologies.get_topology_desc
        return list(make(platform="cuda", topology="1x1x1", target_config=SPECIFICATION).devices)

    local_devices = devices

    def device_count(self):
        return 1

    def process_index(self):
        return 0


def init_backend(platform):
    if platform != "cuda":
        return initialized(platform)
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] == "platform"
    if error := os.environ.get("SIMULATED_ERROR"):
        raise RuntimeError(error)
    return Client()


def initialize():
    hardware_utils.has_visible_nvidia_gpu = lambda: True
    xla_bridge._init_backend = init_backend
'''


def simulate_gpu(
    root: Path, specification: str, monkeypatch: pytest.MonkeyPatch, kind: str = H100
) -> str:
    """Make this process's machine one with a GPU; return a Python whose JAX can use it.

    The compiler of that Python is real, and its GPU is a description.

    Args:
        root: an empty folder.
        specification: the description of the GPU, a GpuTargetConfigProto.
        monkeypatch: undoes this.
        kind: the name that the driver shows.
    """
    compiler = next(iter(environments.installed("cuda")), None)
    assert compiler is not None, "`jaxsight targets install cuda` gets the compiler"
    nvidia(root, kind)
    plugin = root / "site-packages/jax_plugins/xla_simulated/__init__.py"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(f"SPECIFICATION = '''{specification}'''\n{_PLUGIN}")
    monkeypatch.setattr(devices, "ROOT", root)
    monkeypatch.setenv("PYTHONPATH", str(root / "site-packages"))
    monkeypatch.setenv("XLA_FLAGS", f"--xla_gpu_cuda_data_dir={stand_ins.folder()}")
    monkeypatch.setenv("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
    default_target.look_again()
    environments._this_machine.cache_clear()
    return compiler.python
