"""NVIDIA's GPUs.

Sources:
* [guide]: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability"
  (threads, registers and shared memory of a multiprocessor; FP32 units in its section "Arithmetic
  Instructions").
* [sheet]: NVIDIA's data sheet of the product (multiprocessors or CUDA cores, boost clock, memory
  and its bandwidth, peak rates; tensor rates are dense ones).
* [paper]: NVIDIA's architecture white paper (L2 cache).
* [xla]: the specification of the same chip in OpenXLA's `xla/backends/gpu/target_config/specs`,
  for figures that the driver reports.
* [h100]: measured on an H100 (`docs/estimates.md`).

Several at the end of a line are those of its figures, in their order.

The fields of a specification are those that all versions since JAX 0.9 know: an unknown one would
be a parse error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsight.text.units import GIB, KIB, MIB

TERA = 1e12
GIGA = 1e9

THREADS_PER_BLOCK, WARP, SHARED_PER_BLOCK = 1024, 32, 48 * KIB
"""Limits of every GPU here [guide]: threads of a block and of a warp, bytes of shared memory that a
block has by default. AMD's HIP documentation, "Hardware features", has as many threads."""


@dataclass(frozen=True, slots=True)
class Generation:
    """Figures that all chips of a compute capability share [guide]; sizes in bytes."""

    major: int
    minor: int
    threads_per_core: int
    shared_per_core: int
    shared_per_block: int
    """The maximum that a block may request."""
    fpus_per_core: int
    doubles_per_core: int
    """Results of 64-bit multiply-adds of a multiprocessor in a clock, tensor cores apart (section
    "Arithmetic Instructions")."""


VOLTA = Generation(7, 0, 2048, 96 * KIB, 96 * KIB, 64, 32)
TURING = Generation(7, 5, 1024, 64 * KIB, 64 * KIB, 64, 2)
AMPERE = Generation(8, 0, 2048, 164 * KIB, 163 * KIB, 64, 32)
AMPERE_86 = Generation(8, 6, 1536, 100 * KIB, 99 * KIB, 128, 2)
ADA = Generation(8, 9, 1536, 100 * KIB, 99 * KIB, 128, 2)
HOPPER = Generation(9, 0, 2048, 228 * KIB, 227 * KIB, 128, 64)
BLACKWELL = Generation(10, 0, 2048, 228 * KIB, 227 * KIB, 128, 64)
BLACKWELL_ULTRA = Generation(10, 3, 2048, 228 * KIB, 227 * KIB, 128, 2)
BLACKWELL_RTX = Generation(12, 0, 1536, 100 * KIB, 99 * KIB, 128, 2)


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates of a chip that no data sheet has, as they were measured."""

    l2: float
    """Bytes per second that kernels read from and write to the L2 cache."""
    atomic_sectors: float
    """Updates of 32 bytes by atomic instructions per second."""
    atomics_in_sector: float
    """Updates of the same 32 bytes by atomic instructions per second."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A chip.

    Clock in GHz, bandwidth in bytes per second, peak rates in operations per second by the dtype of
    a matmul's operands.
    """

    name: str
    title: str
    """The driver's name of the chip."""
    generation: Generation
    cores: int
    """Streaming multiprocessors."""
    clock: float
    bandwidth: float
    l2: int
    memory: int
    peak: Mapping[str, float] = field(hash=False)
    """`f32` is the rate of the vector units, `tf32`, `bf16`, `f8`, `s8`, `f64` of the tensor cores.

    A missing dtype is not supported by the tensor cores, or has no public figure.
    """
    measured: Rates | None = None
    platform: str = "cuda"

    @property
    def kind(self) -> str:
        """JAX's `device_kind`, which is the driver's name."""
        return self.title

    @property
    def vector(self) -> Mapping[str, float]:
        """Instructions that the lanes of all cores issue in a second, for `f32` and `f64` [guide].

        A fused multiply-add is one. Integers count as `f32`: an H100 computes random bits at nearly
        its rate (`calibration`).
        """
        per_lane = self.cores * self.clock * GIGA
        return {
            "f32": self.generation.fpus_per_core * per_lane,
            "f64": self.generation.doubles_per_core * per_lane,
        }

    @property
    def blas_workspace(self) -> int:
        """Bytes that XLA gives to a call of cuBLAS.

        These are `kHopperWorkspace` and `kDefaultWorkspace` in `xla/service/gpu/matmul_utils.h`,
        from NVIDIA's advice (cuBLAS, `cublasSetWorkspace`).
        """
        return (32 if self.generation.major >= HOPPER.major else 4) * MIB

    def specification(self, title: str = "", more: str = "") -> str:
        """Return the text of a GpuTargetConfigProto; limits that all chips share are from [guide].

        Args:
            title: another name than the driver's.
            more: further fields of its GpuDeviceInfoProto, which not all versions know.
        """
        common = self.generation
        return f"""\
gpu_device_info {{
  threads_per_block_limit: {THREADS_PER_BLOCK}
  threads_per_warp: {WARP}
  shared_memory_per_block: {SHARED_PER_BLOCK}
  shared_memory_per_core: {common.shared_per_core}
  threads_per_core_limit: {common.threads_per_core}
  core_count: {self.cores}
  fpus_per_core: {common.fpus_per_core}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: {self.bandwidth:.0f}
  l2_cache_size: {self.l2}
  clock_rate_ghz: {self.clock}
  device_memory_size: {self.memory}
  shared_memory_per_block_optin: {common.shared_per_block}
  cuda_compute_capability {{ major: {common.major} minor: {common.minor} }}
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
{more}}}
platform_name: "CUDA"
dnn_version_info {{ major: 9 minor: 8 patch: 0 }}
device_description_str: "{title or self.title}"
"""


_HOPPER_RATES = Rates(
    l2=4.4e12,  # [h100] 2^20 and 2^22 float32 copied: 2.5 and 9.3 µs
    atomic_sectors=6.5e10,  # [h100] 1,000,000 float32 added to 50,000: 16.8 µs
    atomics_in_sector=1.57e9,  # [h100] 1,000,000 rows of 16 float32 added to 8: 638 µs
)


def _peak(**teras: float) -> Mapping[str, float]:
    """Return rates of tera operations per second; those of bfloat16 are those of float16, too."""
    of_both = {"f16": teras["bf16"]} if "bf16" in teras else {}
    return {dtype: rate * TERA for dtype, rate in {**teras, **of_both}.items()}


_ALL = (
    Gpu(
        "v100", "Tesla V100-SXM2-16GB", VOLTA,
        cores=80, clock=1.53,  # [sheet] 5120 CUDA cores, 64 to a multiprocessor; [sheet] boost
        bandwidth=900 * GIGA, l2=6 * MIB, memory=16 * GIB,  # [sheet]; [paper]; [sheet]
        peak=_peak(f32=15.7, f16=125, f64=7.8),  # [sheet]
    ),
    Gpu(
        "t4", "Tesla T4", TURING,
        cores=40, clock=1.59,  # [sheet] 2560 CUDA cores, 64 to a multiprocessor; [sheet] boost
        bandwidth=320 * GIGA, l2=4 * MIB, memory=16 * GIB,  # [sheet]; [paper]; [sheet]
        peak=_peak(f32=8.1, f16=65, s8=130),  # [sheet]
    ),
    Gpu(
        "a100", "NVIDIA A100-SXM4-80GB", AMPERE,
        cores=108, clock=1.41,  # [paper]; [sheet] boost
        bandwidth=2039 * GIGA, l2=40 * MIB, memory=80 * GIB,  # [sheet]; [paper]; [sheet]
        peak=_peak(f32=19.5, tf32=156, bf16=312, f64=19.5, s8=624),
    ),
    Gpu(
        "a10", "NVIDIA A10", AMPERE_86,
        cores=72, clock=1.695,  # [sheet] 9216 CUDA cores, 128 to a multiprocessor; [sheet] boost
        bandwidth=600 * GIGA, l2=6 * MIB, memory=24 * GIB,  # [sheet]; [paper] GA102; [sheet]
        peak=_peak(f32=31.2, tf32=62.5, bf16=125, s8=250),  # [sheet]
    ),
    Gpu(
        "a6000", "NVIDIA RTX A6000", AMPERE_86,
        cores=84, clock=1.8,  # [sheet] 10752 CUDA cores, 128 to a multiprocessor; [paper] boost
        bandwidth=768 * GIGA, l2=6 * MIB, memory=48 * GIB,  # [sheet]; [paper]; [sheet]
        peak=_peak(f32=38.7, tf32=77.4, bf16=154.8, s8=309.7),  # [paper]
    ),
    Gpu(
        "l4", "NVIDIA L4", ADA,
        cores=58, clock=2.04,  # [sheet] 7424 CUDA cores, 128 to a multiprocessor; [sheet] boost
        bandwidth=300 * GIGA, l2=48 * MIB, memory=24 * GIB,  # [sheet]; [paper]; [sheet]
        peak=_peak(f32=30.3, tf32=60, bf16=121, f8=242.5, s8=242.5),
    ),
    Gpu(
        "l40s", "NVIDIA L40S", ADA,
        cores=142, clock=2.52,  # [sheet] 18176 CUDA cores, 128 to a multiprocessor; [sheet] boost
        bandwidth=864 * GIGA, l2=96 * MIB, memory=48 * GIB,  # [sheet]; [paper]; [sheet]
        peak=_peak(f32=91.6, tf32=183, bf16=362, f8=733, s8=733),
    ),
    Gpu(
        "rtx4090", "NVIDIA GeForce RTX 4090", ADA,
        cores=128, clock=2.52,  # [paper]; [paper] boost
        bandwidth=1008 * GIGA, l2=72 * MIB, memory=24 * GIB,  # [paper]
        peak=_peak(f32=82.6, tf32=82.6, bf16=165.2, f8=330.3, s8=660.6),
    ),
    Gpu(
        "rtx5090", "NVIDIA GeForce RTX 5090", BLACKWELL_RTX,
        cores=170, clock=2.407,  # [paper]; [paper] boost
        bandwidth=1792 * GIGA, l2=96 * MIB, memory=32 * GIB,  # [paper]
        peak=_peak(f32=104.8, tf32=104.8, bf16=209.5, f8=419, s8=838),
    ),
    Gpu(
        "rtx6000pro", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", BLACKWELL_RTX,
        cores=188, clock=2.617,  # [sheet] 24064 CUDA cores, 128 to a multiprocessor; [paper] boost
        bandwidth=1792 * GIGA, l2=128 * MIB, memory=96 * GIB,  # [sheet]; [paper]; [sheet]
        peak=_peak(f32=125, tf32=251.9, bf16=503.8),  # [paper]
    ),
    Gpu(
        "h100", "NVIDIA H100 80GB HBM3", HOPPER,
        cores=132, clock=1.98,  # [paper] SXM5; [xla]
        bandwidth=3352.32 * GIGA, l2=50 * MIB, memory=84942979072,  # [xla]; [paper]; [xla]
        peak=_peak(f32=66.9, tf32=494.7, bf16=989.4, f8=1978.9, f64=66.9, s8=1978.9),
        measured=_HOPPER_RATES,
    ),
    Gpu(
        "h200", "NVIDIA H200", HOPPER,
        cores=132, clock=1.98,  # [sheet] as the H100 SXM; [xla] as the H100
        bandwidth=4800 * GIGA, l2=50 * MIB, memory=141 * 10**9,  # [sheet]; [paper] H100; [sheet]
        peak=_peak(f32=66.9, tf32=494.7, bf16=989.4, f8=1978.9, f64=66.9, s8=1978.9),
        measured=_HOPPER_RATES,
    ),
    Gpu(
        "b200", "NVIDIA B200", BLACKWELL,
        cores=148, clock=1.965,  # [xla]
        bandwidth=8000 * GIGA, l2=126 * MIB, memory=180 * 10**9,  # [sheet]; [xla]; [sheet]
        peak=_peak(f32=75, tf32=1100, bf16=2250, f8=4500, f64=37, s8=4500),
    ),
    Gpu(
        "gb200", "NVIDIA GB200", BLACKWELL,
        cores=152, clock=2.062,  # [xla]
        bandwidth=8000 * GIGA, l2=135528448, memory=186 * 10**9,  # [sheet] of a GPU; [xla]; [sheet]
        peak=_peak(f32=80, tf32=1250, bf16=2500, f8=5000, f64=40, s8=5000),
    ),
    Gpu(
        "b300", "NVIDIA B300", BLACKWELL_ULTRA,
        cores=148, clock=1.92,  # [xla]
        bandwidth=8000 * GIGA, l2=126 * MIB, memory=288 * 10**9,  # [sheet]; [xla] B200; [sheet]
        peak=_peak(f32=75, tf32=1100, bf16=2250, f8=4500, f64=1.3),
    ),
)  # fmt: skip

GPUS: Mapping[str, Gpu] = {gpu.name: gpu for gpu in _ALL}
"""GPUs by name, in the order in which they are listed."""
