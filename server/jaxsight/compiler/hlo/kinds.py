"""Classify kernels: a keyword for programs, and a description."""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.compiler.hlo.distributed.collectives import (
    COLLECTIVES,
    collective_in,
    collective_kind,
)
from jaxsight.compiler.hlo.fused import Fused
from jaxsight.hlo.shapes import arrays, elements
from jaxsight.hlo.text import HOST_EXECUTE, Instruction
from jaxsight.wire.kernel_graph import KernelKind

TRIVIAL = frozenset(
    {"parameter", "constant", "bitcast", "tuple", "get-tuple-element", "broadcast", "reshape"}
)
"""Operations inside a kernel that do not compute anything."""

_LIBRARIES = (
    # Prefixes of the targets of custom calls, as XLA and JAX name them.
    ("__cublas$lt$", "cuBLASLt matmul"),
    ("__cublas$triangularSolve", "cuBLAS triangular solve"),
    ("__cublas$", "cuBLAS matmul"),
    ("__cudnn$conv", "cuDNN convolution"),
    ("__cudnn$norm", "cuDNN norm"),
    ("__cudnn$fmha", "cuDNN attention"),
    ("__cudnn$", "cuDNN"),
    ("__cub$DeviceRadixSort", "CUB radix sort"),
    ("__cub$", "CUB"),
    ("cu_threefry", "random bits"),
    ("__gpu$TopK", "top-k"),
    ("cu_lu_pivots_to_permutation", "permutation of LU pivots"),
    ("hip_lu_pivots_to_permutation", "permutation of LU pivots"),
    ("cu_cholesky_update", "Cholesky update"),
    ("cublas", "cuBLAS"),
    ("cusolver", "cuSOLVER"),
    ("cusparse", "cuSPARSE"),
    ("cudnn", "cuDNN"),
    ("hip", "HIP"),
    ("lapack", "LAPACK"),
    ("blas", "BLAS"),
    ("__onednn$", "oneDNN"),
    ("__onednn", "oneDNN"),
    ("ducc_", "FFT (DUCC)"),
    ("TopK", "top-k"),
    ("Cholesky", "Cholesky"),
    ("EighTpu", "symmetric eigenvalues"),
    ("InvertDiagBlocks", "inverse of diagonal blocks"),
    ("LuRealDecompositionBlock", "LU of a block"),
    ("LuComplexDecompositionBlock", "LU of a block"),
    ("QrDecompositionBlock", "QR of a block"),
    ("CompactWyHelper", "QR of a block"),
    ("X64", "32-bit halves"),
    ("tpu_custom_call", "Mosaic kernel"),
    ("mosaic_gpu", "Mosaic kernel"),
    ("__gpu$xla.gpu.triton", "Triton kernel"),
    ("triton_kernel_call", "Triton kernel"),
    ("xla.gpu.ext.cub_sort", "CUB radix sort"),
)

_WITH_ROUTINES = frozenset({"cuSOLVER", "LAPACK", "cuBLAS", "HIP", "BLAS"})
"""Libraries that are described with their routine, such as `cuSOLVER LU`."""
_ROUTINES = (
    # Names of LAPACK's routines, as also in cuSOLVER and hipSOLVER; targets of JAX contain them.
    ("getrf", "LU"),
    ("geqrf", "QR"),
    ("geqp3", "pivoted QR"),
    ("orgqr", "Q of QR"),
    ("ungqr", "Q of QR"),
    ("ormqr", "product with Q"),
    ("potrf", "Cholesky"),
    ("syev", "symmetric eigenvalues"),
    ("heev", "symmetric eigenvalues"),
    ("geev", "eigenvalues"),
    ("gesdd", "SVD"),
    ("gesvd", "SVD"),
    ("gesvdj", "SVD"),
    ("gees", "Schur"),
    ("gehrd", "Hessenberg"),
    ("sytrd", "tridiagonal reduction"),
    ("hetrd", "tridiagonal reduction"),
    ("gtsv", "tridiagonal solve"),
    ("trsm", "triangular solve"),
)

HOST_CALLBACK = "host callback"
_CALLBACKS = re.compile(r"callback|xla_ffi_python|infeed|outfeed", re.IGNORECASE)
_HOST = "is_host_transfer=true"
_FUSION = {
    "kLoop": "loop fusion",
    "kInput": "input fusion",
    "kOutput": "output fusion",
    "kCustom": "custom fusion",
}
_FUSED_BACKEND = re.compile(r'"fusion_backend_config":\{"kind":"([^"]*)"')

_HEROES = (
    # The operations that a fusion is named after, the most characteristic first.
    ("dot", "matmul"),
    ("scaled-dot", "matmul"),
    ("ragged-dot", "ragged matmul"),
    ("convolution", "convolution"),
    ("scatter", "scatter"),
    ("sort", "sort"),
    ("reduce-window", "windowed reduction"),
    ("reduce", "reduction"),
    ("select-and-scatter", "scatter"),
    ("dynamic-update-slice", "update in place"),
    ("gather", "gather"),
    ("transpose", "transpose"),
    ("concatenate", "concatenate"),
    ("rng-bit-generator", "random bits"),
)


_AS_CONVOLUTION = {"dot_general": ("dot", "matmul"), "fft": ("fft", "FFT")}
"""Primitives that are convolutions in libtpu's HLO: their operation, and its description."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind and the title of a `Kernel`, and its characteristic operation.

    `hero` is `reduce`, `dot`, `fft`, `custom-call`, …, or empty.
    """

    word: KernelKind
    title: str
    hero: str = ""


_OPERATIONS = {
    "call": Kind("op", "small loop in one unit", "while"),
    "sort": Kind("sort", "sort", "sort"),
    "dot": Kind("library", "matmul", "dot"),
    "ragged-dot": Kind("library", "matmul", "dot"),
    "scaled-dot": Kind("library", "matmul", "dot"),
    "triangular-solve": Kind("library", "triangular solve", "custom-call"),
    "cholesky": Kind("library", "cholesky", "custom-call"),
    "transpose": Kind("copy", "transpose", "transpose"),
    "rng-bit-generator": Kind("op", "random bits", "rng-bit-generator"),
    "rng": Kind("op", "random bits", "rng-bit-generator"),
    "rng-get-and-update-state": Kind("op", "random bits", "rng-bit-generator"),
    "infeed": Kind("callback", "infeed", "callback"),
    "outfeed": Kind("callback", "outfeed", "callback"),
    "broadcast": Kind("memset", "memset", ""),
}
"""The kinds of operations whose description needs nothing but their opcode."""


def kind(fused: Fused) -> Kind:
    """Return the kind of a kernel."""
    instruction = fused.instruction
    if (communicating := collective_in(fused)) is not None:
        return _operation(communicating)
    if instruction.opcode == "async-start":
        inside = [inner for inner in fused.inside if inner.opcode not in TRIVIAL]
        return _operation(inside[-1]) if inside else Kind("op", "asynchronous")
    if instruction.opcode in ("fusion", "fusion-start"):
        return _fusion(fused)
    return _operation(instruction)


def _operation(instruction: Instruction) -> Kind:
    """Return the kind of an operation that is a kernel by itself."""
    opcode = instruction.opcode.removesuffix("-start")
    if opcode in ("send", "recv") and _HOST in instruction.attributes:
        # On TPUs, a callback to Python is a pair of these.
        words = "send to the host" if opcode == "send" else "receive from the host"
        return Kind("callback", words, "callback")
    if (communicates := collective_kind(opcode)) is not None:
        return Kind("collective", COLLECTIVES[communicates], "collective")
    match opcode:
        case "custom-call":
            return _custom_call(instruction)
        case "fft":
            return Kind("library", f"FFT ({instruction.attribute('fft_type')})", "fft")
        case "convolution":
            hero, words = _convolution([instruction])
            return Kind("library", words, hero)
        case "copy":
            value = next(iter(arrays(instruction.shape)), None)
            of = f" of {value.text}" if value is not None and value.bytes > 0 else ""
            return Kind("copy", f"copy{of}", "copy")
        case _:
            return _OPERATIONS.get(opcode, Kind("op", opcode, opcode))


def _fusion(fused: Fused) -> Kind:
    instruction, opcodes = fused.instruction, fused.opcodes
    backend = match[1] if (match := _FUSED_BACKEND.search(instruction.attributes)) else ""
    hero, words = next(((op, words) for op, words in _HEROES if op in opcodes), ("", ""))
    if hero == "convolution":
        hero, words = _convolution(fused.inside)
    if "triton" in backend:
        return Kind("triton", f"Triton {words or 'fusion'}", hero)
    if backend.startswith(("__cudnn", "__cublas")):
        library = "cuDNN" if "cudnn" in backend else "cuBLAS"
        return Kind("library", f"{library} {words or 'fusion'}", hero)
    if "custom-call" in opcodes:
        call = next(inner for inner in fused.inside if inner.opcode == "custom-call")
        inner = _custom_call(call)
        if inner.word in ("library", "callback"):
            return inner
    if "fft" in opcodes:
        return Kind("library", "FFT", "fft")
    real = opcodes - TRIVIAL
    is_of_scalars = all(
        elements(inner.shape) == 1 for inner in fused.inside if inner.opcode == "constant"
    )
    if real <= {"copy"} and not instruction.operands and is_of_scalars:
        return _OPERATIONS["broadcast"]
    if not real:
        return Kind("fusion", "broadcast", "")
    if real <= {"copy"}:
        return Kind("copy", "copy", "copy")
    if real <= {"transpose", "copy"}:
        return _OPERATIONS["transpose"]
    name = _FUSION.get(instruction.attribute("kind"), "fusion")
    return Kind("fusion", f"{name} ({words})" if words else name, hero)


def _convolution(inside: list[Instruction]) -> tuple[str, str]:
    """Return the user's operation of the convolutions in a kernel, and its description."""
    names = {inner.op_name.rpartition("/")[2] for inner in inside if inner.opcode == "convolution"}
    alone = names.pop() if len(names) == 1 else ""
    return _AS_CONVOLUTION.get(alone, ("convolution", "convolution"))


def _custom_call(instruction: Instruction) -> Kind:
    target = instruction.attribute("custom_call_target")
    for beginning, words in _LIBRARIES:
        if target.startswith(beginning):
            heroes = (("sort", "sort"), ("matmul", "dot"), ("conv", "convolution"))
            hero = next((hero for part, hero in heroes if part in words), "custom-call")
            if words in _WITH_ROUTINES:
                computes = next((word for name, word in _ROUTINES if name in target), "")
                words = f"{words} {computes}".rstrip()
            return Kind("triton" if "Triton" in words else "library", words, hero)
    if _CALLBACKS.search(target):
        return Kind("callback", HOST_CALLBACK, "callback")
    if target == HOST_EXECUTE:
        return Kind("custom call", "computation on the host", "callback")
    name = target.removeprefix("__gpu$").removeprefix("__cpu$").removesuffix("_ffi")
    return Kind("custom call", f"custom call {name}".rstrip(), "custom-call")
