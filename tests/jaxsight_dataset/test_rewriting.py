"""Rewrite pairs: the programs they are made of, and what their two sides must agree in."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxsight.features.fixes.registry import FIXES
from jaxsight_dataset.cli import rewriting
from jaxsight_dataset.generating.improvable import TEMPLATES, improvable
from jaxsight_dataset.making.engines import Local
from jaxsight_dataset.making.make import MadeDataset, Store, rewrite
from jaxsight_dataset.making.selection import split_of
from jaxsight_dataset.making.shards import ShardTask
from jaxsight_dataset.making.worker_process import WorkerProcess
from jaxsight_dataset.program import Array, Program
from jaxsight_dataset.schema import REWRITES, problem

BEFORE = '''\
import jax.numpy as jnp


def largest(x):
    """Find the largest value of each row.

    Example inputs:
        x: f32[4, 500]
    """
    return jnp.sort(x, axis=-1)[..., -1]
'''

AFTER = BEFORE.replace("jnp.sort(x, axis=-1)[..., -1]", "jnp.max(x, axis=-1)")

PROGRAM = Program(
    5, BEFORE, "largest", {"x": Array("float32", (4, 500))}, "wasted work", "jx215 sorted"
)


def test_programs_depend_on_seed_and_number_alone() -> None:
    programs = [improvable(3, number) for number in range(2 * len(TEMPLATES))]
    assert programs == [improvable(3, number) for number in range(2 * len(TEMPLATES))]
    assert {program.template for program in programs} == {each.name for each in TEMPLATES}
    for program in programs:
        names: dict[str, Any] = {}
        exec(program.text, names)
        assert callable(names[program.function])


def test_a_seed_has_hundreds_of_programs() -> None:
    texts = {improvable(0, number).text for number in range(600)}
    assert len(texts) > 550


def test_templates_are_written_for_rules_with_fixes() -> None:
    rules = {template.name[:5].upper() for template in TEMPLATES}
    assert rules <= set(FIXES)
    assert len(rules) >= 15


def test_templates_are_in_all_splits() -> None:
    assert {split_of(template.name) for template in TEMPLATES} == {"train", "validation", "test"}


def compared(after: str) -> dict[str, Any]:
    """The answer of a worker about the program and another one."""
    with WorkerProcess(sys.executable, x64=False) as worker:
        return worker.ask({"action": "rewrite", "program": PROGRAM.record(), "after": after})


def test_a_pair_has_the_figures_of_both_programs() -> None:
    row = compared(AFTER)["rewrite"]
    assert row["validation"] == {"results": "equal"}
    before, after = row["figures_before"], row["figures_after"]
    assert before["temp_bytes"] > after["temp_bytes"]
    assert before["equation_count"] > after["equation_count"] == 1
    assert min(before["kernel_count"], after["kernel_count"]) >= 1
    assert "sort" in row["jaxpr_before"]
    assert "sort" not in row["jaxpr_after"]
    assert row["canonical_digest"] != row["after_digest"]


@pytest.mark.parametrize(
    ("after", "cause"),
    [
        (AFTER.replace("jnp.max", "jnp.min"), "results differ"),
        (AFTER.replace("axis=-1", "axis=0"), "other types of results"),
        (AFTER.replace("jnp.max", "jnp.largest"), "trace"),
    ],
)
def test_a_program_with_other_results_is_no_pair(after: str, cause: str) -> None:
    assert compared(after)["rejected"] == cause


def pairs_of(*programs: Program) -> list[dict[str, Any]]:
    sources = tuple({"program": program.record(), "split": "test"} for program in programs)
    return rewriting.make(
        ShardTask("rewrites", 0, sources, x64=False), sys.executable, lambda: None
    )


@pytest.mark.slow
def test_a_proved_fix_becomes_a_pair_and_anything_else_has_a_cause() -> None:
    sound = dataclasses.replace(PROGRAM, number=6, text=AFTER)
    fixed, kept = pairs_of(PROGRAM, sound)
    pair = fixed["rewrite"]
    assert not problem(pair, REWRITES)
    assert (pair["rule"], pair["title"], pair["is_safe"]) == ("JX215", "Use `jnp.max`", True)
    assert (pair["before"], pair["after"], pair["split"]) == (BEFORE, AFTER, "test")
    assert re.findall(r"(?m)^[+-] .*", pair["diff"]) == [
        "-    return jnp.sort(x, axis=-1)[..., -1]",
        "+    return jnp.max(x, axis=-1)",
    ]
    checks = ("fix", "printed", "eager", "stablehlo")
    assert pair["validation"] == {**dict.fromkeys(checks, "passed"), "results": "equal"}
    assert kept == {"rejected": "no proved fix"}


def made(folder: Path, jobs: int, samples: int = 3) -> MadeDataset:
    engine = Local(sys.executable, jobs, lambda: None, rewriting.make)
    return rewrite(samples, 0, Store(folder, {"seed": 0}), engine, lambda *_: None)


@pytest.mark.slow
def test_pairs_depend_neither_on_jobs_nor_on_interruptions(tmp_path: Path) -> None:
    once = made(tmp_path / "once", 1).record()
    assert once["rows"] == 3
    shards = sorted((tmp_path / "once" / "work").glob("rewrites-*"))
    shards[-1].unlink()  # as if the run had ended before
    assert made(tmp_path / "once", 1).record() == once
    assert made(tmp_path / "twice", 2).record() == once
