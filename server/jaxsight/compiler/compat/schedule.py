"""Look at programs that XLA has fused and scheduled, before it generates code.

This applies to JAX 0.10.2 to 0.12, on CPUs: XLA hands the scheduled program to a function of ours,
and an exception in it ends the compile. After that stage XLA only numbers stack frames anew, unless
there are `opt-barrier`s (as of `jax.checkpoint`): JAX 0.12 removes them then, and simplifies tuples
and fusions. `tests/compiler/tiers.py` compares.

Private API used: `jaxlib._xla`, which `jax.extend.xla.register_hlo_module_transformation` calls (a
compiler does not import JAX, see `jaxlib_alone`), and `jaxlib._hlo`, to read serialized programs.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxsight.hlo.shapes import HOST_SPACE
from jaxsight.profiles.protobuf import fields
from jaxsight.wire.messages.compiling import HostMemory, Memory

try:
    from jaxlib import _hlo, _xla  # type: ignore[attr-defined]
except ImportError:
    _xla = None

log = logging.getLogger(__name__)

_names = itertools.count()
_POST_SCHEDULER = 1
"""`PipelineStage.POST_SCHEDULER` in `jax/_src/xla_transform.py`."""


def can_look() -> bool:
    """Return whether this jaxlib hands scheduled programs to Python."""
    return hasattr(_xla, "register_xla_transform")


@contextlib.contextmanager
def looking(look: Callable[[bytes], None]) -> Iterator[None]:
    """Call `look` with every program that XLA schedules on the CPU while the body runs.

    If `look` raises, the compile ends with XLA's error. No other thread may compile meanwhile:
    jaxlib keeps the functions without a lock (0.12.0.1 had a segmentation fault).
    """
    name = f"jaxsight {next(_names)}"
    _xla.register_xla_transform(name, _POST_SCHEDULER, look)
    try:
        yield
    finally:
        _xla.clear_xla_transform(name, _POST_SCHEDULER)


def is_final(program: bytes) -> bool:
    """Return whether XLA leaves the instructions of a scheduled program as they are."""
    return b"opt-barrier" not in program


def module_of(program: bytes) -> Any:
    """Return XLA's module of a serialized program."""
    return _hlo.XlaComputation(program).get_hlo_module()


# End compiles for absent GPUs before XLA generates code, and read the program that it has dumped.
#
# This applies to jaxlib 0.10.2 to 0.12 with the CUDA plugin of the same version.
#
# XLA's option `xla_gpu_kernel_cache_file` names a file with kernels of earlier compiles. XLA reads
# it once memory is assigned and the optimized program is dumped, before it emits the first kernel
# (`CompileModuleToLlvmIr` and `LoadCache` in `xla/service/gpu/compile_module_to_llvm_ir.cc`): a
# file that it cannot parse ends the compile there. Compiles of candidates for a matmul do not read
# the file (`autotuner_compile_util.h`, now `gpu_codegen_backend.h`).
#
# From 0.12 on, XLA also compiles every fusion by itself, to see that one of its emitters supports
# it (`ConfigAssigner::GetConfig` in `xla/backends/autotuner/config_assigner.cc`). For fusions other
# than matmuls and reductions of Triton the choice changes only `backend_config`, so that this is
# disabled; matmuls are always tried.
#
# `jax.extend.xla` is no way here: jaxlib 0.10.2 registers transformations only with clients of
# devices that are present, and in 0.12 XLA changes the program after the stage `POST_SCHEDULER`.
#
# Private API used: the fields of an HloProto (`xla/service/hlo.proto`).


_CACHE = "kernels"
_NO_CACHE = b"\xff" * 16
"""No serialized message begins with this byte, whose wire type 7 does not exist."""

_ALLOCATION = 3
"""Field of a BufferAssignmentProto."""
_SIZE = 2
_COLOR = 8
"""The memory space of an allocation."""
_THREAD_LOCAL, _PARAMETER, _RESULT, _CONSTANT, _ALIASED = 3, 5, 7, 12, 13
"""Fields of a BufferAllocationProto."""


@dataclass(frozen=True, slots=True)
class Dumped:
    """An optimized program: a serialized HloModuleProto, and its memory without code and peak."""

    program: bytes
    memory: Memory


@contextlib.contextmanager
def dump_folder() -> Iterator[Path]:
    """Create a temporary folder for this user alone.

    A compiler is killed during compiles that nobody waits for any more: its guardian deletes it.
    """
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def dumping_into(folder: Path) -> dict[str, str | bool]:
    """Return options that dump the optimized program in an empty folder of this user's own."""
    return {"xla_dump_to": str(folder), "xla_dump_hlo_as_proto": True}


def ending(folder: Path) -> dict[str, str | bool]:
    """Return options that end a compile before code generation, with a dump in `folder`.

    Args:
        folder: an empty folder that belongs to this user alone.
    """
    cache = folder / _CACHE
    cache.write_bytes(_NO_CACHE)
    return {
        "xla_gpu_kernel_cache_file": str(cache),
        "xla_gpu_experimental_enable_fusion_autotuner": False,
        **dumping_into(folder),
    }


def read_dump(folder: Path) -> Dumped | None:
    """Return the optimized program in a folder.

    `None` if a compile ended before it, or if the dump has another form, which is logged.
    """
    files = list(folder.glob("*_gpu_after_optimizations.hlo.pb"))
    if len(files) != 1:
        return None
    try:
        match dict(fields(files[0].read_bytes())):
            case {1: bytes(program), 3: bytes(assignment)}:  # `hlo_module`, `buffer_assignment`
                host = HostMemory(*_sizes(assignment, on_host=True))
                return Dumped(program, Memory(*_sizes(assignment, on_host=False), host=host))
        raise ValueError(f"{files[0].name} is not an HloProto with a buffer assignment")
    except (ValueError, IndexError):
        log.exception("cannot read XLA's dump")
        return None


def _sizes(assignment: bytes, *, on_host: bool) -> tuple[int, int, int, int]:
    """Return the bytes of temporaries, arguments, results, and arguments that are also results.

    They are those of an executable's memory analysis (`PopulateBufferStatsFromAllocations` in
    `xla/pjrt/pjrt_executable.cc`; temporaries: `BufferAllocation::IsPreallocatedTempBuffer` in
    `xla/service/buffer_assignment.h`).

    Args:
        assignment: a BufferAssignmentProto.
        on_host: whether they are those of the host, or of the device.
    """
    temporaries = arguments = outputs = aliased = 0
    for field, allocation in fields(assignment):
        if field != _ALLOCATION or not isinstance(allocation, bytes):
            continue
        values = dict(fields(allocation))
        size = values.get(_SIZE, 0)
        if not isinstance(size, int) or (values.get(_COLOR) == HOST_SPACE) is not on_host:
            continue
        is_parameter, is_result = bool(values.get(_PARAMETER)), bool(values.get(_RESULT))
        arguments += size * is_parameter
        outputs += size * is_result
        aliased += size * bool(is_parameter and values.get(_ALIASED))
        others = is_parameter, is_result, values.get(_THREAD_LOCAL), values.get(_CONSTANT)
        temporaries += size * (not any(others))
    return temporaries, arguments, outputs, aliased
