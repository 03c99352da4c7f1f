"""Tasks on made-up rows: questions, predictions of all kinds, and scores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jaxsight_dataset import QuestionSet, baseline, evaluate, questions
from jaxsight_dataset.tables.files import UnreadableFile
from jaxsight_dataset.tables.manifest import NoDataset
from jaxsight_dataset.tasks.predictions import InvalidPredictions
from tests.jaxsight_dataset.tables.conftest import jaxsight
from tests.jaxsight_dataset.tables.synthetic import dataset, row, target


def compiled(number: int) -> dict[str, Any]:
    """A row whose kernels have equations on lines."""
    figures = target("cpu", 1 + number % 3)
    for at, kernel in enumerate(figures["kernels"]):
        kernel |= {"equations": [str(at)], "kind": ("fusion", "copy", "sort")[at]}
    places = dict.fromkeys(("column", "end_line", "end_column"), 1)
    aligned = [
        {"equation": str(at), "line": 4 + at, "expression": "", "instructions": [], **places}
        for at in range(3)
    ]
    hlo = 'HloModule m\n  add = f32[] add(x), metadata={op_name="jit(f)/eq[1]/add"}'
    return row(number, targets=[figures], alignment=aligned, hlo=hlo, minhash=[number // 5] * 32)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 100 rows, of which 20 are in `test`."""
    out = tmp_path_factory.mktemp("tasks") / "pairs"
    dataset(out, map(compiled, range(100)), "jsonl")
    return out


def test_the_truth_gets_full_marks(pairs: Path) -> None:
    every = QuestionSet("kernels", pairs)
    asked = list(questions(every, with_answers=True))
    assert len(asked) == 20
    found = evaluate(every, {each["id"]: each["answer"] for each in asked})
    assert set(found.scores.values()) == {1.0}
    assert set(found.errors.values()) <= {0.0}
    assert (found.valid, found.missing, found.invalid, found.reasons) == (20, 0, 0, {})


def test_a_constant_gets_the_share_of_its_answer(pairs: Path) -> None:
    every = QuestionSet("kernels", pairs)
    constant, *others = (each["prediction"] for each in baseline(every, "constant"))
    assert all(other == constant for other in others)
    answers = [each["answer"] for each in questions(every, with_answers=True)]
    found = evaluate(every, dict.fromkeys(ids(pairs), constant))
    assert found.scores["exact"] == pytest.approx(answers.count(constant) / len(answers))
    assert 0.2 < found.scores["exact"] < 0.5


def ids(pairs: Path) -> list[str]:
    return [each["id"] for each in questions(QuestionSet("kernels", pairs))]


def test_the_nearest_program_of_train_answers(pairs: Path) -> None:
    asked = {
        each["id"]: each["prediction"]
        for each in baseline(QuestionSet("kernels", pairs), "nearest")
    }
    answers = {
        each["id"]: each["answer"]
        for each in questions(QuestionSet("kernels", pairs, split="train"), with_answers=True)
    }
    for identity, prediction in asked.items():
        number = int(identity.partition("/")[2])
        assert prediction == answers[f"kernels/{number - number % 5}"]  # the same signature


def test_questions_have_no_answer_and_stay_the_same(pairs: Path) -> None:
    asked = list(questions(QuestionSet("kernels", pairs, limit=7)))
    assert len(asked) == 7
    assert asked == list(questions(QuestionSet("kernels", pairs, limit=7)))
    assert asked != list(questions(QuestionSet("kernels", pairs, limit=7, seed=1)))
    assert not any({"answer", "targets", "alignment"} & each.keys() for each in asked)
    assert "eq[" not in json.dumps(asked)


def test_questions_of_a_limit_are_among_all(pairs: Path) -> None:
    few, every = (
        [json.dumps(each) for each in questions(QuestionSet("kernels", pairs, limit=limit))]
        for limit in (5, None)
    )
    assert set(few) < set(every)


@pytest.mark.parametrize(
    "prediction",
    [None, "four", -1, True, float("nan"), [1.5], [[]], {"count": 3}, 1e400],
    ids=repr,
)
def test_a_prediction_of_another_type_is_wrong(prediction: object, pairs: Path) -> None:
    asked = ids(pairs)
    found = evaluate(QuestionSet("kernels", pairs), {asked[0]: prediction})
    assert (found.invalid, found.missing, found.valid) == (1, 19, 0)
    assert set(found.scores.values()) == {0.0}
    assert found.errors == {}
    assert sum(found.reasons.values()) == 20


LINES = {
    "no JSON": ("{", "invalid JSON"),
    "nested": ("[" * 100_000, "invalid JSON"),
    "a list": ("[]", "expected an object with `id` and `prediction`"),
    "no id": ('{"prediction": 1}', "expected an object with `id` and `prediction`"),
    "a number as id": ('{"id": 1, "prediction": 1}', "expected a text as `id`"),
    "twice": (
        '{"id": "kernels/4", "prediction": 1}\n{"id": "kernels/4", "prediction": 1}',
        "a second prediction for 'kernels/4'",
    ),
    "of train": (
        '{"id": "kernels/0", "prediction": 1}',
        "'kernels/0' is no question of kernels on test with seed 0",
    ),
    "escapes": ('{"id": "\\u001b[31m", "prediction": 1}', r"'\\x1b[31m' is no question of"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_file_of_something_else_is_one_message(name: str, pairs: Path, tmp_path: Path) -> None:
    line, expected = LINES[name]
    path = tmp_path / "predictions.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InvalidPredictions) as raised:
        evaluate(QuestionSet("kernels", pairs), path)
    assert expected in str(raised.value)
    assert len(str(raised.value)) < 120


def test_rows_that_were_changed_are_not_asked_about(pairs: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs"
    manifest = dataset(out, map(compiled, range(10)), "jsonl")
    path = out / manifest.of_table("rows", "test")[0]
    path.write_text(path.read_text().replace("fusion", "copied"))
    with pytest.raises(UnreadableFile, match="another digest than the manifest"):
        list(questions(QuestionSet("kernels", out)))


def test_what_a_split_shares_with_train_is_counted(tmp_path: Path) -> None:
    rows = [compiled(number) for number in range(20)]
    rows[4] |= {
        name: rows[0][name] for name in ("canonical_digest", "structure_digest", "template")
    }
    dataset(tmp_path / "pairs", rows, "jsonl")
    found = evaluate(QuestionSet("kernels", tmp_path / "pairs"), {})
    assert found.leaks == {"programs": 1, "structures_and_templates": 2}


def test_datasets_without_rows_are_not_asked_about(tmp_path: Path) -> None:
    dataset(tmp_path / "wrong", [{"disagreement": row(4)}], "jsonl")
    with pytest.raises(NoDataset, match="has no rows; kernels asks about rows"):
        list(questions(QuestionSet("kernels", tmp_path / "wrong")))


def test_the_command_asks_predicts_and_scores(pairs: Path, tmp_path: Path) -> None:
    for command in (
        ("questions", "kernels", str(pairs), "-o", "questions.jsonl"),
        ("baseline", "kernels", "nearest", str(pairs), "-o", "nearest.jsonl"),
    ):
        done = jaxsight("dataset", *command, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "nearest.jsonl: 20 predictions\n"
    scored = ("dataset", "eval", "kernels", str(tmp_path / "nearest.jsonl"))
    done = jaxsight(*scored, cwd=pairs)
    assert done.stdout.startswith("kernels · cpu · 20 questions of test\n"), done.stderr
    record = json.loads(jaxsight(*scored, "--json", cwd=pairs).stdout)
    assert record["questions"] == record["valid"] == 20
    nothing = ("questions", "kernels", str(pairs), "--target", "tpu:v4", "-o", "none.jsonl")
    refused = jaxsight("dataset", *nothing, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    message = "the dataset has no question of kernels for tpu:v4 on test with seed 0"
    assert refused.stderr == f"error: {message}\n"
    assert not (tmp_path / "none.jsonl").exists()
    refused = jaxsight("dataset", "eval", "kernels", "questions.jsonl", str(pairs), cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "error: questions.jsonl:1: expected an object with `id` and `prediction`\n"
    )
