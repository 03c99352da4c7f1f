"""Sharded programs of other projects: their collectives equal those of an independent compile."""

from __future__ import annotations

import sys
from collections import Counter

import jax
import pytest

from jaxsight.workers.compilation import environments
from tests.corpora.meshes.corpus import PROGRAMS
from tests.meshes.acceptance import compare
from tests.meshes.independent import Moved, collectives
from tests.searches import part

QUICK = (
    "shard_map_matmul",
    "shard_map_collectives",
    "distributed_arrays",
    "fsdp_and_optimizer",
    "run_excerpts",
)
CUSTOM_PARTITIONING = "run_pmpp:laplacian"
"""Its partitioner is a Python function, which runs in the process that lowers only."""

quick = [p for p in PROGRAMS if p.name.startswith(QUICK)]
rest = [p for p in PROGRAMS if p not in quick and p.name != CUSTOM_PARTITIONING]


@pytest.mark.slow
def test_collectives_equal_those_of_an_independent_compile() -> None:
    assert [r.problem for r in compare(quick, "cpu:8") if r.problem] == []


@pytest.mark.search
@pytest.mark.slow
def test_collectives_of_the_other_programs_equal_those_of_an_independent_compile() -> None:
    assert [r.problem for r in compare(part(rest), "cpu:8") if r.problem] == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the compilers are for Linux alone")
def test_collectives_on_eight_absent_h100_equal_an_independent_count() -> None:
    assert environments.suiting("cuda", jax.__version__) is not None
    assert [r.problem for r in compare(quick, "cuda:h100x8") if r.problem] == []


def test_a_program_that_is_partitioned_in_python_has_no_figures() -> None:
    (program,) = (p for p in PROGRAMS if p.name == CUSTOM_PARTITIONING)
    (result,) = compare([program], "cpu:8")
    assert "custom_partitioning" in result.answer.error
    assert result.counted


def test_the_count_knows_each_way_of_writing_groups_and_loops() -> None:
    assert collectives(HLO, 8) == Counter(
        {
            Moved("all-reduce", 64, 2): 3,
            Moved("all-gather", 128, 4): 1,
            Moved("all-gather", 128, 2): 1,
            Moved("collective-permute", 64, 2): 1,
            Moved("all-reduce", 64, 8): 1,
        }
    )


HLO = """\
HloModule jit_f, is_scheduled=true, num_partitions=8

%body (p: (s32[], f32[16])) -> (s32[], f32[16]) {
  %p = (s32[], f32[16]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[16]{0} get-tuple-element(%p), index=1
  %all-reduce.1 = f32[16]{0} all-reduce(%x), replica_groups=[4,2]<=[8], to_apply=%add
  ROOT %t = (s32[], f32[16]{0}) tuple(%i, %all-reduce.1)
}

%condition (p.1: (s32[], f32[16])) -> pred[] {
  %p.1 = (s32[], f32[16]{0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%p.1), index=0
  %limit = s32[] constant(3)
  ROOT %lt = pred[] compare(%i.1, %limit), direction=LT
}

ENTRY %main (a: f32[16]) -> f32[16] {
  %a = f32[16]{0} parameter(0)
  %zero = s32[] constant(0)
  %t.1 = (s32[], f32[16]{0}) tuple(%zero, %a)
  %while.1 = (s32[], f32[16]{0}) while(%t.1), condition=%condition, body=%body
  %b = f32[16]{0} get-tuple-element(%while.1), index=1
  %c = f32[8]{0} slice(%b), slice={[0:8]}
  %all-gather.1 = f32[32]{0} all-gather(%c), replica_groups=mesh['x'=4,'y'=2] {'x'}, dimensions={0}
  %all-gather-start.1 = (f32[16]{0}, f32[32]{0}) all-gather-start(%b), \
replica_groups=mesh['x'=4,'y'=2], device_ids=([2,4]T(1,0)) {'x':(2)2}, dimensions={0}
  %all-gather-done.1 = f32[32]{0} all-gather-done(%all-gather-start.1)
  %moved = f32[16]{0} collective-permute(%b), source_target_pairs={{0,1},{1,0}}
  ROOT %all-reduce.2 = f32[16]{0} all-reduce(%moved), replica_groups={}, to_apply=%add
}
"""
