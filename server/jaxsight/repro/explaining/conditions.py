"""Whether a repro fails without `jax.jit`, under other options of JAX, and under flags of XLA."""

from __future__ import annotations

import re

from jaxsight.repro.explaining.trials import Condition, Trials
from jaxsight.repro.explanation import FLAGS, JIT, Table, TrialRow, Verdict

_EAGER = Condition((("JAX_DISABLE_JIT", "1"),))
_OPTIONS = (
    (("JAX_ENABLE_X64", "1"), "with 64-bit types"),
    (("JAX_DEFAULT_MATMUL_PRECISION", "highest"), "with the highest precision of products"),
    (("JAX_DISABLE_MOST_OPTIMIZATIONS", "1"), "without most optimizations"),
)

_OF_EAGER = {
    Verdict.PASSES: "the failure needs `jax.jit`",
    Verdict.FAILS: "the failure occurs with and without `jax.jit`",
    Verdict.OTHER: "without `jax.jit`, the program fails in another way",
}

_FLAGS = (
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
"""Flags that switch a part of XLA's compiler for CPUs off, or choose its simplest form
(`xla/debug_options_flags.cc`); a jaxlib need not have all of them.
"""

SETS_FLAGS = re.compile(r"environ\[[\"']XLA_FLAGS[\"']\]\s*=(?!.*environ\.get\([\"']XLA_FLAGS)")
"""An assignment that discards the flags of the environment."""


def table_of_options(trials: Trials, text: str) -> Table:
    """Return the table of jit, eager and other options for a repro of this `text`."""
    eager = _row(trials, _EAGER, "without `jax.jit`", text)
    options = [_row(trials, Condition((option,)), subject, text) for option, subject in _OPTIONS]
    rows = (trials.row(Condition(), "as it is"), eager, *options)
    return Table(JIT, rows, _OF_EAGER.get(eager.verdict, ""))


def _row(trials: Trials, condition: Condition, subject: str, text: str) -> TrialRow:
    name = condition.variables[0][0]
    # By variable or by config, a repro may set an option of JAX itself.
    by_variable = rf"(?:environ\[[\"']{name}[\"']\]\s*=[^=]|setdefault\([\"']{name}[\"'])"
    if re.search(rf"{by_variable}|update\([\"']{name.lower()}[\"']", text):
        return TrialRow(subject, Verdict.UNTRIED, f"the file sets {name.lower()}")
    return trials.row(condition, subject)


def table_of_flags(trials: Trials) -> Table:
    """Return the table of flags; flags that this jaxlib does not have are not tried."""
    rows = tuple(trials.row(Condition.flags(flag), flag) for flag in _FLAGS)
    healing = [f"`{row.subject}`" for row in rows if row.verdict is Verdict.PASSES]
    others = [row.subject for row in rows if row.verdict is Verdict.OTHER]
    notes = (f"fails in another way with {', '.join(others)}",) if others else ()
    conclusion = ""
    if healing:
        conclusion = f"it passes with {' or '.join(healing)}"
    elif any(row.verdict is not Verdict.UNTRIED for row in rows):
        conclusion = "none of these flags avoids the failure"
    return Table(FLAGS, rows, conclusion, notes)
