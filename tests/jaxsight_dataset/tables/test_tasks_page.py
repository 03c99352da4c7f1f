"""The page on tasks: its commands print what it shows, and its examples run, on the shipped rows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jaxsight_dataset import QuestionSet, evaluate, questions
from tests.jaxsight_dataset.tables.conftest import SERVER, jaxsight

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "dataset" / "dataset-tasks.md").read_text(encoding="utf-8")
SAMPLE = ROOT / "examples" / "dataset"


def shown(command: str) -> str:
    """What the page shows below a command."""
    return TEXT.partition(f"$ {command}\n")[2].partition("$ ")[0].partition("```")[0]


@pytest.mark.slow
def test_a_model_is_trained_and_scored_as_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    subprocess.run(
        [sys.executable, "examples/predict_kernels.py", "examples/dataset", "predictions.jsonl"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SERVER)},
        check=True,
    )
    for command in (
        "dataset eval kernels predictions.jsonl examples/dataset",
        "dataset baseline kernels constant examples/dataset -o constant.jsonl",
        "dataset eval kernels constant.jsonl examples/dataset",
    ):
        done = jaxsight(*command.split(), cwd=tmp_path)
        printed = "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())
        assert printed == shown(f"jaxsight {command}"), done.stderr


def test_examples_run_on_the_shipped_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "pairs").symlink_to(SAMPLE)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(example, names)
    assert re.match(
        r"\{'exact': 0\.\d+, 'within_one': 0\.\d+, .*\}\n\d\d\n$", capsys.readouterr().out
    )


@pytest.mark.parametrize("target", ["cpu", "cuda:h100"])
def test_the_truth_of_the_shipped_rows_gets_full_marks(target: str) -> None:
    asked = QuestionSet("kernels", SAMPLE, target=target)
    truth = {each["id"]: each["answer"] for each in questions(asked, with_answers=True)}
    found = evaluate(asked, truth)
    assert set(found.scores.values()) == {1.0}
    assert found.questions >= 20
    assert set(found.leaks.values()) == {0}
