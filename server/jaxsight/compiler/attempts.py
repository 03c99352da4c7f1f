"""Compile without the features of XLA that need the device, and explain XLA's errors to users."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from jaxsight.compiler.compat import xla
from jaxsight.targets.own import busy
from jaxsight.targets.target import Target, recognized

# jaxlib 0.10.2 finds no tiles for some matmuls on an H100 (`jax.image.resize`, f32[8,224,224,3] to
# 112): on the device autotuning drops such a candidate, ahead of time nothing does.
_TRITON_FAILS = re.compile(r"Couldn't find output tile sizes|triton", re.IGNORECASE)
_TRITON_MATMULS = "xla_gpu_enable_triton_gemm"
_PALLAS = re.compile(r"Triton support is only enabled.* capability (\d+\.\d+)\) and up")
_MOSAIC = b"mosaic_gpu"
"""The target of Mosaic's custom calls (`jax/_src/pallas/mosaic_gpu`,
`jaxlib/mosaic/gpu/custom_call.cc`).
"""
_MOSAIC_FAILED = "Pass pipeline failed"
_ALGORITHM = re.compile(r"Unsupported algorithm on the current device\(s\): (ALG_\w+)")
_DTYPES = (("BF16", "bfloat16"), ("F8", "float8"), ("TF32", "TF32"), ("F16", "float16"))
_CUSTOM_PARTITIONING = re.compile(r"CustomSPMDPartitioning|custom partitioning", re.IGNORECASE)
"""The target of `jax.custom_partitioning`, whose Python functions XLA calls while it compiles."""
_CUDNN = re.compile(r"cudnn|\bdnn\b", re.IGNORECASE)


Compile = Callable[[bytes, xla.Devices, Mapping[str, str | bool]], xla.Compilation]
"""`xla.compile` or `xla.compile_to_schedule`."""


def compile(
    program: bytes,
    devices: xla.Devices,
    options: Mapping[str, str],
    target: Target,
    attempt: Compile = xla.compile,
) -> tuple[xla.Compilation, tuple[str, ...]]:
    """Compile a portable artifact; if an emitter fails inside XLA, retry without it.

    Returns:
        XLA's result, and notes on differences from a compile on the device.

    Raises:
        Refused: as for `xla.compile`, with a message that names the target.
    """
    try:
        return _tried(program, devices, {**devices.options, **options}, attempt)
    except xla.NotCompilable as error:
        if target.is_own and (why := busy.problem(str(error))):
            raise xla.NotCompilable("busy", why) from error
        target = recognized(target, devices.kind)
        words = explained(str(error), target)
        if _MOSAIC_FAILED in words and _MOSAIC in program and target.capability:
            words = (
                f"Pallas's Mosaic kernels need compute capability 9.0 or newer: {target.title} has "
                f"{target.capability}; `compiler_params` of `jax.experimental.pallas.triton` "
                "select Triton"
            )
        raise xla.NotCompilable(error.kind, words) from error


def _tried(
    program: bytes, devices: xla.Devices, options: Mapping[str, str | bool], attempt: Compile
) -> tuple[xla.Compilation, tuple[str, ...]]:
    try:
        return attempt(program, devices, options), ()
    except xla.NotCompilable as error:
        message = str(error)
        is_internal = error.kind == "xla" and "INTERNAL" in message
        if not (is_internal and _TRITON_FAILS.search(message)) or _TRITON_MATMULS in options:
            raise
        try:
            compiled = attempt(program, devices, {**options, _TRITON_MATMULS: False})
        except xla.NotCompilable:
            raise error from None
        words = message.partition("INTERNAL: ")[2] or message
        clause = words.splitlines()[0].partition(" that satisfy hlo")[0]
        return compiled, (f"compiled without Triton's matmuls: XLA fails with {clause!r}",)


def explained(message: str, target: Target) -> str:
    """Return an error of XLA's for users: the missing feature of the device and a remedy, if known.

    Args:
        message: XLA's own message, which may quote many lines of HLO.
    """
    has = f"{target.title} has {target.capability}" if target.capability else target.title
    if (pallas := _PALLAS.search(message)) is not None:
        return f"Pallas's Triton kernels need compute capability {pallas[1]}: {has}"
    if (algorithm := _ALGORITHM.search(message)) is not None:
        dtype = next((name for part, name in _DTYPES if part in algorithm[1]), "")
        product = f"no {dtype} matmul" if dtype else "no such matmul"
        return f"{target.title} has {product} ({algorithm[1]}): use another dtype"
    if _CUSTOM_PARTITIONING.search(message):
        return (
            "`custom_partitioning` calls Python while XLA compiles, which only the program can do"
        )
    if not target.is_own and _CUDNN.search(message):
        return f"cuDNN can compile this only on the device itself ({target.title})"
    return message
