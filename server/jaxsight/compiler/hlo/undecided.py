"""What autotuning on the device may make of matmuls and convolutions that were compiled without it.

A convolution is given to cuDNN in any case, but which algorithm, and what memory that needs, is
measured on the device (`xla/backends/gpu/autotuner/cudnn.cc`).

For a matmul XLA takes Triton's kernel without the device. On the device the autotuner also measures
cuBLAS: a `FissionBackend` (`fission_backend.cc` and `factory_cuda.cc` in
`xla/backends/gpu/autotuner`) takes the fusion apart, gives the product to cuBLAS, and leaves the
operations before and after it to kernels of their own. In place of one kernel there are then

* a kernel for each operand that is more than an input of the fusion,
* the product, with its workspace (`GemmWorkspaceRewriteVisitor` in
  `xla/service/gpu/transforms/gemm_rewriter.cc`),
* a kernel for each result that is more than the product,

and the arrays between them are in memory. cuBLAS may compute an epilogue itself (a bias, a scale),
so that these are upper ends.
Split-K is not tuned: XLA splits before it, in the same way with and without the device
(`xla/service/gpu/transforms/splitk_rewriter.cc`).
"""

from __future__ import annotations

import re

from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.kinds import Kind
from jaxsight.hlo.shapes import arrays, dtype, total_bytes
from jaxsight.hlo.text import Computation, Instruction
from jaxsight.wire.kernel_work import Undecided

_TUNED = re.compile(r'"kind":"__triton(_nested)?_gemm(_fusion)?"')
_SPLIT = re.compile(r"dot_bf16_bf16_f32_x([369])")
"""An algorithm whose operands `xla/backends/gpu/transforms/dot_algorithm_rewriter.cc` splits into
parts of bfloat16, with this number of products of them."""
_PARTS = {1: 1, 3: 2, 6: 3, 9: 3}
"""Parts of an operand by the number of products."""
_FREE = frozenset({"bitcast"})
"""Operations for which nothing runs: a value stays where it is."""

_CONVOLUTION = 'custom_call_target="__cudnn$conv'
_SORT = 'custom_call_target="xla.gpu.ext.cub_sort'
_SPARE = 50
"""One part in so many of the scratch memory of a sort by CUB is spare: without the device XLA takes
that of an input that is up to 2 % longer (`CreateNumItemsList` in XLA's
`generate_cub_scratch_size_lib.cu.cc`).
"""
_NOT_TUNED = '"algo_id":"-1"'


def undecided(fused: Fused, workspace: int) -> Undecided | None:
    """Return what may become of a kernel; `None` if it is the same on the device.

    Args:
        workspace: bytes of the workspace that XLA gives to cuBLAS on the target's chip.
    """
    instruction, body = fused.instruction, fused.body
    if _CONVOLUTION in instruction.attributes and _NOT_TUNED in instruction.attributes:
        return Undecided("cuDNN")
    if _SORT in instruction.attributes:
        scratch = arrays(instruction.shape)[-1].bytes
        return Undecided("CUB", calls=0, workspace=0, spare=scratch // _SPARE)
    if body is None or _TUNED.search(instruction.attributes) is None:
        return None
    dots = [each for each in body.instructions if each.opcode in ("dot", "scaled-dot")]
    if len(dots) != 1:
        return None
    (dot,) = dots
    split = _SPLIT.search(dot.attributes)
    products = int(split[1]) if split else 1
    made = [each for each in body.operands(dot) if split or _is_made(body, each)]
    after = sum(body.source(result, _FREE) is not dot for result in body.results())
    sums = 2 * (products - 1)  # of products, each with a check for values that are not finite
    results = products if after or split else 0
    return Undecided(
        "cuBLAS",
        kernels=len(made) * _PARTS[products] + products + sums + after,
        calls=products,
        workspace=workspace,
        buffers=_PARTS[products] * sum(total_bytes(each.shape) for each in made)
        + results * total_bytes(dot.shape),
    )


def _is_made(body: Computation, operand: Instruction) -> bool:
    """Return whether cuBLAS reads an operand from memory that is no input of the fusion.

    For products of 8-bit floats XLA may transpose inputs, too (`CreateF8CustomCall` in
    `xla/service/gpu/transforms/gemm_rewriter.cc`).
    """
    is_input = body.source(operand, _FREE).opcode == "parameter"
    return not is_input or dtype(operand.shape).startswith("f8")


# How many launches a call of a library makes on a GPU, as far as the HLO says.
#
# The libraries of a factorization, a convolution or a Fourier transform choose their kernels by the
# sizes and the chip, and by values where they iterate: on an H100 one SVD of f32[256,256] takes 600
# launches, one FFT of c64[1048576] two.


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
