"""Under which flags of XLA a repro fails."""

from __future__ import annotations

import re

from jaxsight.repro.explaining.trials import Condition, Trials
from jaxsight.repro.explanation import FAILS, FLAGS, OTHER, PASSES, Row, Table

CPU_FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_experimental_ynn_fusion_type=",
    "--xla_cpu_experimental_xnn_fusion_type=",
    "--xla_cpu_experimental_xnn_graph_fusion_mode=XNN_GRAPH_FUSION_MODE_DISABLED",
    "--xla_cpu_experimental_onednn_fusion_type=",
    "--xla_cpu_use_xnnpack=false",
    "--xla_cpu_use_onednn=false",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_enable_fast_math=false",
    "--xla_cpu_enable_fast_min_max=false",
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_cpu_max_isa=AVX2",
    "--xla_cpu_enable_concurrency_optimized_scheduler=false",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_llvm_disable_expensive_passes=true",
)
GPU_FLAGS = (
    "--xla_backend_optimization_level=0",
    "--xla_gpu_autotune_level=0",
    "--xla_gpu_enable_triton_gemm=false",
    "--xla_gpu_enable_command_buffer=",
    "--xla_gpu_exclude_nondeterministic_ops=true",
    "--xla_gpu_enable_latency_hiding_scheduler=false",
    "--xla_gpu_multi_streamed_windowed_einsum=false",
    "--xla_allow_excess_precision=false",
)
"""Flags that switch a part of the compiler off, or choose its simplest form."""

SETS_FLAGS = re.compile(r"environ\[[\"']XLA_FLAGS[\"']\]\s*=(?!.*environ\.get\([\"']XLA_FLAGS)")
"""An assignment that discards the flags of the environment."""


def table(trials: Trials, flags: tuple[str, ...] = CPU_FLAGS) -> Table:
    """Return the table of flags; flags that this jaxlib does not have are not tried."""
    rows = tuple(trials.row(Condition.flags(flag), flag) for flag in flags)
    return Table(FLAGS, rows, _conclusion(rows), _notes(rows))


def _conclusion(rows: tuple[Row, ...]) -> str:
    healing = [row.subject for row in rows if row.verdict == PASSES]
    if healing:
        return "it passes with " + " or ".join(f"`{flag}`" for flag in healing)
    if any(row.verdict in (FAILS, OTHER) for row in rows):
        return "none of these flags avoids the failure"
    return ""


def _notes(rows: tuple[Row, ...]) -> tuple[str, ...]:
    others = [row.subject for row in rows if row.verdict == OTHER]
    return (f"fails in another way with {', '.join(others)}",) if others else ()
