"""What functions compile to in a revision and now: outcomes, their order, reports."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from jaxsight.cli.output.printing import versioned
from jaxsight.cli.revisions.report import ChangeOutcome, RevisionReport, changes
from jaxsight.cli.revisions.sides import ProgramSide
from jaxsight.features.findings.locked import LockableFunction
from jaxsight.locks.facts import KernelFact, ProgramFacts
from jaxsight.locks.notation import LockSection
from jaxsight.source.text import Position, Range
from tests.cli.published import validate
from tests.cli.test_revision_tree import git
from tests.terminal import SERVER, jaxsight

FACTS = ProgramFacts(
    kernels=(KernelFact("output", 4096),),
    launches=1,
    traffic=8192,
    inputs="f32[1024]",
    results="f32[1024]",
    program="same",
)


def function(name: str, facts: ProgramFacts | None = FACTS, problem: str = "") -> LockableFunction:
    at = Range(Position(4, 4), Position(4, 4 + len(name)))
    return LockableFunction(name, LockSection("cuda:h100", "0.12.0"), at, facts, problem)


def side(*functions: LockableFunction, file: str = "model.py") -> ProgramSide:
    keys = {(file, each.name, each.section.target): each for each in functions}
    return ProgramSide(Path(), keys)


SPLIT = replace(
    FACTS,
    kernels=(KernelFact("optimization_barrier", 4096, line=7), *FACTS.kernels),
    launches=2,
    traffic=16384,
    program="split",
)


def outcomes(before: ProgramSide, after: ProgramSide) -> dict[str, str]:
    return {each.key[1]: each.outcome.value for each in changes(before, after)}


def test_each_function_has_an_outcome_the_worst_first() -> None:
    before = side(
        function("same"),
        function("worse"),
        function("better", SPLIT),
        function("fails"),
        function("fixed", None, "it cannot be traced"),
        function("always", None, "it cannot be traced"),
        function("gone"),
        function("other"),
        function("inputs"),
    )
    after = side(
        function("same"),
        function("worse", SPLIT),
        function("better"),
        function("fails", None, "it cannot be traced"),
        function("fixed"),
        function("always", None, "it cannot be traced"),
        function("new", replace(FACTS, program="new")),
        function("other", replace(FACTS, program="other")),
        function("inputs", replace(FACTS, inputs="f32[2048]", traffic=16384)),
    )
    assert list(outcomes(before, after).items()) == [
        ("fails", "fails"),
        ("worse", "worse"),
        ("inputs", "other inputs"),
        ("better", "better"),
        ("other", "changed"),
        ("fixed", "no longer fails"),
        ("new", "new"),
        ("gone", "gone"),
        ("always", "unknown"),
        ("same", "same"),
    ]


def test_of_several_that_are_worse_the_one_that_has_grown_most_is_first() -> None:
    before = side(*map(function, "abc"))
    after = side(
        function("a", replace(FACTS, traffic=9000)),
        function("b", replace(FACTS, traffic=90_000)),
        function("c", replace(FACTS, traffic=20_000)),
    )
    assert [each.key[1] for each in changes(before, after)] == ["b", "c", "a"]


def test_a_function_that_is_moved_is_neither_new_nor_gone() -> None:
    moved = changes(side(function("f")), side(function("g"), file="other.py"))
    assert [(each.outcome, each.reason) for each in moved] == [(ChangeOutcome.MOVED, "model.py:f")]
    summary = RevisionReport("main", "0123456789abcdef", moved).summary
    assert summary == "0 of 1 functions differ from main (0123456789), 1 moved"


def test_functions_of_a_file_that_cannot_be_read_are_not_gone() -> None:
    after = ProgramSide(Path(), broken={"model.py": "invalid syntax"})
    [change] = changes(side(function("f")), after)
    assert (change.outcome, change.reason) == (ChangeOutcome.FAILS, "invalid syntax")
    before = ProgramSide(Path(), broken={"model.py": "invalid syntax"})
    [change] = changes(before, side(function("f")))
    assert change.outcome is ChangeOutcome.UNKNOWN


def report(before: ProgramSide, after: ProgramSide) -> RevisionReport:
    return RevisionReport("main", "0123456789abcdef", changes(before, after))


def test_a_comment_has_a_row_for_what_got_better_or_worse() -> None:
    before = side(function("f"), function("g", SPLIT), function("h"))
    after = side(function("f", SPLIT), function("g"), function("h"), function("i"))
    assert report(before, after).as_markdown() == (
        "### ❌ jaxsight diff: 3 of 4 functions differ from main (0123456789), 1 for the worse\n"
        "\n"
        "|  | function | kernels | launches | traffic | why |\n"
        "|---|---|---:|---:|---:|---|\n"
        "| ❌ | `model.py:7 f` | 1 → 2 | 1 → 2 | 8 KiB → 16 KiB "
        "| kernels 1 → 2; kernel split: optimization\\_barrier at line 7"
        "<br>traffic 8 KiB → 16 KiB; 4 KiB more written at line 7<br>launches 1 → 2 |\n"
        "| ✅ | `model.py:5 g` | 2 → 1 | 2 → 1 | 16 KiB → 8 KiB "
        "| kernels 2 → 1<br>launches 2 → 1<br>traffic 16 KiB → 8 KiB |\n"
        "\n"
        "compiled for cuda:h100, jax 0.12.0\n"
    )


def test_a_comment_says_so_if_nothing_differs() -> None:
    lines = report(side(function("f")), side(function("f"))).as_markdown().splitlines()
    assert lines == [
        "### ✅ jaxsight diff: 0 of 1 functions differ from main (0123456789)",
        "",
        "compiled for cuda:h100, jax 0.12.0",
    ]


def test_json_of_all_outcomes_is_as_published() -> None:
    before = side(function("f"), function("g", SPLIT), function("h", None, "it cannot be traced"))
    after = side(function("f", SPLIT), function("i"), function("h", None, "it cannot be traced"))
    validate("diff", versioned(report(before, after).record()))


MODEL = '''\
import jax
import jax.numpy as jnp

from helper import scale


def loss(x):
    """Return the loss.

    Example inputs:
        x: f32[256, 128]
    """
    return jnp.mean(scale(x) ** 2)


def activation(x):
    """Return the activation.

    Example inputs:
        x: f32[1024]
    """
    y = jnp.tanh(x)
    return y * 2.0
'''


@pytest.mark.slow
def test_a_project_is_compared_with_a_revision(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "model.py").write_text(MODEL)
    helper = project / "lib" / "helper.py"
    helper.parent.mkdir()
    helper.write_text("def scale(x):\n    return x * 0.5\n")
    git(project, "init", "-q")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "before")
    barrier = "jax.lax.optimization_barrier(jnp.tanh(x))"
    (project / "model.py").write_text("# moved\n" + MODEL.replace("jnp.tanh(x)", barrier))

    def diff(*arguments: str) -> subprocess.CompletedProcess[str]:
        return jaxsight(
            "diff",
            *arguments,
            cwd=project,
            HOME=str(tmp_path),
            XDG_CACHE_HOME=str(tmp_path / "cache"),
            PYTHONPATH=os.pathsep.join((str(SERVER), str(helper.parent))),
        )

    done = diff("HEAD", "--json")
    assert done.returncode == 1, done.stderr
    worse, same = json.loads(done.stdout)["functions"]
    assert (worse["function"], worse["outcome"], worse["line"]) == ("activation", "worse", 23)
    assert worse["differences"][0] == {
        "figure": "kernels",
        "change": "kernels 1 → 2",
        "cause": "kernel split: optimization_barrier",
        "line": 23,
        "worse": True,
    }
    assert (same["function"], same["outcome"]) == ("loss", "same")

    # Also of a module that the function imports, the revision's text counts.
    (project / "model.py").write_text(MODEL)
    helper.write_text("import jax\n\n\ndef scale(x):\n    return jax.lax.sort(x)\n")
    done = diff("HEAD")
    assert done.returncode == 1
    assert "model.py:loss" in done.stdout
    assert "1 of 2 functions differs from HEAD" in done.stdout

    git(project, "commit", "-q", "-am", "after")
    assert diff("HEAD").returncode == 0
    empty = diff("HEAD", "lib")
    assert empty.returncode == 3
