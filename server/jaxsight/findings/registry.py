"""Which module finds what, and from what: the table that `catalogue` is the index of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jaxsight.findings import (
    jx101_captured_constant,
    jx102_folded_while_compiling,
    jx103_folded_constant,
    jx104_regular_constant,
    jx201_tiny_reduction,
    jx202_fusion_barrier,
    jx203_fft_layout,
    jx204_loop_invariant_temporary,
    jx205_stored_subexpression,
    jx206_parallel_branches,
    jx207_short_loop,
    jx208_meshgrid,
    jx209_unrolled_loop,
    jx210_tiny_launches,
    jx211_scatter_contention,
    jx212_batched_cond,
    jx301_weak_typed_output,
    jx304_truncated_to_32_bit,
    jx305_reduced_precision,
    jx403_key_reused,
    jx404_index_out_of_bounds,
    jx405_nan,
    jx407_unusable_donation,
    jx408_residuals,
    jx409_peak_memory,
    jx410_large_intermediate,
    jx411_sharding,
    jx412_dead_equation,
    jx413_miscompiled,
)
from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading

Find = Callable[[Reading], Iterator[Noticed]]

OF_PROGRAMS: Mapping[str, Find] = {
    module.CODE: module.find
    for module in (
        jx101_captured_constant,
        jx104_regular_constant,
        jx209_unrolled_loop,
        jx212_batched_cond,
        jx301_weak_typed_output,
        jx304_truncated_to_32_bit,
        jx403_key_reused,
        jx404_index_out_of_bounds,
        jx405_nan,
        jx407_unusable_donation,
        jx408_residuals,
        jx412_dead_equation,
        jx413_miscompiled,
    )
}
"""Found in what was traced; nothing needs to be compiled."""

OF_KERNELS: Mapping[str, Find] = {
    module.CODE: module.find
    for module in (
        jx102_folded_while_compiling,
        jx103_folded_constant,
        jx201_tiny_reduction,
        jx202_fusion_barrier,
        jx203_fft_layout,
        jx204_loop_invariant_temporary,
        jx205_stored_subexpression,
        jx206_parallel_branches,
        jx207_short_loop,
        jx208_meshgrid,
        jx210_tiny_launches,
        jx211_scatter_contention,
        jx305_reduced_precision,
        jx409_peak_memory,
        jx410_large_intermediate,
        jx411_sharding,
    )
}
"""Found in what a target makes of it."""
