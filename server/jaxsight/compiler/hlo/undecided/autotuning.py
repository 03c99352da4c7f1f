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
from jaxsight.hlo.shapes import arrays, dtype, total_bytes
from jaxsight.hlo.text import Computation, Instruction
from jaxsight.wire.kernels.undecided import Undecided

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
