"""How many launches a call of a library makes on a GPU, as far as the HLO says.

The libraries of a factorization, a convolution or a Fourier transform choose their kernels by the
sizes and the chip, and by values where they iterate: on an H100 one SVD of f32[256,256] takes 600
launches, one FFT of c64[1048576] two.
"""

from __future__ import annotations

from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.kinds import Kind
from jaxsight.wire.kernels.undecided import Undecided

_MATMULS = ("__cublas$lt$matmul", "__cublas$gemm")
_ONE_KERNEL = (
    # Targets of custom calls that are one kernel of XLA's or JAX's own.
    "__gpu$TopK",
    "__gpu$xla.gpu.triton",
    "triton_kernel_call",
    "mosaic_gpu",
    "cu_threefry",
    "hip_threefry",
    "cu_lu_pivots_to_permutation",
    "hip_lu_pivots_to_permutation",
    "xla.gpu.ext.cub_sort",
    "__cub$",
)
BESIDE_A_MATMUL = 1
"""Maximum launches of cuBLAS besides the product: it clears its workspace, or adds the sums of a
split-K algorithm. Of 13 kinds of products on an H100 9 had one, and none had more."""


def launches_besides(
    fused: Fused, kind: Kind, tuned: Undecided | None, platform: str
) -> int | None:
    """Return the maximum launches of one execution besides the first; `None` if unknown.

    Those of sorts, which are counted elsewhere, are not among them.

    Args:
        tuned: what autotuning on the device may make of the kernel.
    """
    if tuned is not None and tuned.workspace is not None:
        return tuned.kernels - 1 + BESIDE_A_MATMUL * tuned.calls
    if platform not in ("cuda", "rocm") or kind.word not in ("library", "custom call"):
        return 0
    if kind.hero == "fft":
        return None
    calls = [inner for inner in fused.inside if inner.opcode == "custom-call"]
    if not calls:
        return None if "cuDNN" in kind.title or "cuBLAS" in kind.title else 0
    targets = [call.attribute("custom_call_target") for call in calls]
    if all(target.startswith(_MATMULS) for target in targets):
        return BESIDE_A_MATMUL * len(targets)
    return 0 if all(target.startswith(_ONE_KERNEL) for target in targets) else None
