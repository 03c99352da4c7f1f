"""The model of XLA's fusion on the CPU: small programs, and text that is no program."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from jaxsight.dataset import QuestionSet, baseline, evaluate
from jaxsight.dataset.tasks.estimating import fusing
from jaxsight.dataset.tasks.task import NoBaseline
from tests.dataset.tables.synthetic import dataset, row, target


def module(body: str, *others: str) -> str:
    """A module whose function takes and returns a matrix."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    main = (
        f"  func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> {{\n{lines}\n  }}\n"
    )
    return f"module @jit_f {{\n{main}{''.join(others)}}}\n"


MATRIX, ROW = "tensor<4x8xf32>", "tensor<4xf32>"
SUM = f"""\
%cst = stablehlo.constant dense<0.0> : tensor<f32>
%0 = stablehlo.exponential %arg0 : {MATRIX}
%1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1] : \
({MATRIX}, tensor<f32>) -> {ROW}
"""
BROADCAST = f"%2 = stablehlo.broadcast_in_dim %1, dims = [0] : ({ROW}) -> {MATRIX}\n"
HELPER = f"""\
  func.func private @helper(%arg0: {MATRIX}) -> {MATRIX} {{
    %0 = stablehlo.negate %arg0 : {MATRIX}
    return %0 : {MATRIX}
  }}
"""
LOOP = f"""\
%c = stablehlo.constant dense<0> : tensor<i32>
%0:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, {MATRIX}
cond {{
  %1 = stablehlo.compare LT, %iterArg, %iterArg, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %1 : tensor<i1>
}} do {{
  %1 = stablehlo.tanh %iterArg_0 : {MATRIX}
  %2 = stablehlo.add %iterArg, %iterArg : tensor<i32>
  stablehlo.return %2, %1 : tensor<i32>, {MATRIX}
}}
return %0#1 : {MATRIX}
"""
PROGRAMS = {
    "elementwise": (
        (
            f"%0 = stablehlo.sine %arg0 : {MATRIX}\n%1 = stablehlo.add %0, %arg0 : {MATRIX}\n"
            f"return %1 : {MATRIX}"
        ),
        ["fusion"],
    ),
    "nothing": (f"return %arg0 : {MATRIX}", ["copy"]),
    "a sum": (f"{SUM}return %1 : {ROW}", ["fusion"]),
    "a sum that each element reads": (
        f"{SUM}{BROADCAST}%3 = stablehlo.divide %0, %2 : {MATRIX}\nreturn %3 : {MATRIX}",
        ["fusion", "fusion", "fusion"],
    ),
    "a matrix product": (
        (
            f"%0 = stablehlo.sine %arg0 : {MATRIX}\n"
            "%1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [1] : "
            f"({MATRIX}, {MATRIX}) -> tensor<4x4xf32>\nreturn %1 : tensor<4x4xf32>"
        ),
        ["fusion", "library"],
    ),
    "a call": (
        (
            f"%0 = call @helper(%arg0) : ({MATRIX}) -> {MATRIX}\n"
            f"%1 = stablehlo.abs %0 : {MATRIX}\nreturn %1 : {MATRIX}"
        ),
        ["fusion"],
    ),
    "a small loop": (LOOP, ["copy", "copy", "op"]),
    "a loop": (
        LOOP.replace("4x8", "400x8"),
        ["copy", "copy", "fusion", "fusion", "fusion"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_are_estimated(name: str) -> None:
    body, expected = PROGRAMS[name]
    assert fusing.kinds(module(body, HELPER)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "}",
        "no program {\n%\n}",
        module("%0 = call @main(%arg0)\nreturn %0"),
        module("%0 = stablehlo.tanh %0\nreturn %0"),
        module("%0 = stablehlo.add %1, %1\n%1 = stablehlo.tanh %0\nreturn %1"),
        module("%0 = stablehlo.case(%0) ({\n" * 2000),
        module(LOOP.replace("stablehlo.tanh %iterArg_0", "call @main(%iterArg_0)")),
        module(f"%0 = stablehlo.tanh %arg0 : tensor<{'9' * 5000}xf32>\nreturn %0"),
    ],
)
def test_text_that_is_no_program_has_some_estimate(text: str) -> None:
    assert len(fusing.kinds(text)) < 10


def test_damaged_programs_have_some_estimate() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        lines = module(PROGRAMS[chance.choice([*PROGRAMS])][0], HELPER).splitlines()
        for _ in range(3):
            at, other = chance.randrange(len(lines)), chance.choice(lines)
            lines[at : at + chance.randrange(2)] = [other[: chance.randrange(len(other) + 1)]]
        fusing.kinds("\n".join(lines))


def test_estimates_are_a_baseline_for_the_cpu(tmp_path: Path) -> None:
    body, expected = PROGRAMS["a sum that each element reads"]
    figures = [target(name, 3) for name in ("cpu", "cuda:h100")]
    for kernel in (kernel for each in figures for kernel in each["kernels"]):
        kernel["kind"] = "fusion"
    rows = [row(n, targets=figures, stablehlo=module(body)) for n in range(5)]
    dataset(tmp_path, rows, "jsonl")
    asked = QuestionSet("kernels", tmp_path)
    (own,) = baseline(asked, "jaxsight")
    assert own == {"id": "kernels/4", "prediction": expected}
    assert set(evaluate(asked, {own["id"]: own["prediction"]}).scores.values()) == {1.0}
    with pytest.raises(NoBaseline, match="of the CPU alone"):
        baseline(QuestionSet("kernels", tmp_path, target="cuda:h100"), "jaxsight")
    with pytest.raises(NoBaseline, match="no prediction for this task"):
        baseline(QuestionSet("temporaries", tmp_path), "jaxsight")
