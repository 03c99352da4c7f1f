"""The task `same-program`: mutants, rewrites, and how both are proved."""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

import pytest

from jaxsight.files.private import cache_folder
from jaxsight_dataset import QuestionSet, Spec, baseline, evaluate, generate, questions
from jaxsight_dataset.tasks import changes
from jaxsight_dataset.tasks.proofs import PairProofs
from jaxsight_dataset.tasks.workers import TaskWorkers
from tests.jaxsight_dataset.tables.synthetic import dataset, row

MODULE = '''\
import jax.numpy as jnp


def smooth(x, weights):
    """Smooth numbers: über 1.5.

    Example inputs:
        x: f32[4, 3]
        weights: f32[3]
    """

    def inner(u):
        return (u - 0.25) / jnp.exp(u)

    scaled = 1.5 * (x + weights)
    squashed = jnp.tanh(inner(x))
    total = jnp.sum(scaled - squashed, axis=0)
    return total.astype(jnp.float32), jnp.where(x > 0, x, scaled)
'''


def changed(before: str, after: str) -> list[str]:
    """The lines that are only in the second of two texts."""
    return [line.strip() for line in after.splitlines() if line not in before.splitlines()]


def test_a_mutant_differs_in_one_place_of_a_function() -> None:
    found = list(changes.mutants(MODULE, random.Random(0)))
    assert {name for name, _ in found} == set(changes.CHANGES)
    lines = {
        name: sorted(" ".join(changed(MODULE, it)) for at, it in found if at == name)
        for name in changes.CHANGES
    }
    assert "return (u - 0.25) * jnp.exp(u)" in lines["operator"]
    assert "squashed = jnp.sinh(inner(x))" in lines["function"]
    assert "return jnp.exp(u) / (u - 0.25)" in lines["order"]
    assert any(line.startswith("return total.astype(jnp.") for line in lines["dtype"])
    assert all(
        line.startswith("total = jnp.sum(scaled - squashed, axis=") for line in lines["axis"]
    )
    for _, mutant in found:
        ast.parse(mutant)
        assert mutant != MODULE
        assert mutant.startswith(MODULE.partition("    def inner")[0])  # not in docstrings


def test_mutants_depend_on_their_seed_alone() -> None:
    first, again, other = (list(changes.mutants(MODULE, random.Random(seed))) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_rewrite_has_other_names_and_the_same_parameters() -> None:
    text = changes.rewritten(MODULE, random.Random(3))
    assert "scaled" not in text
    assert "def smooth(x, weights):" in text
    assert "def inner(u):" in text
    ast.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        'def f(x):\n    y = x\n    return f"{y}"\n',
        "def f(x):\n    return x\n",
        "x = 1\n",
    ],
)
def test_a_module_with_nothing_to_change_stays(text: str) -> None:
    assert changes.rewritten(text, random.Random(0)) == text
    assert list(changes.mutants(text, random.Random(0))) == []


@pytest.mark.parametrize("number", range(0, 170, 10))
def test_changes_of_generated_programs_can_be_parsed(number: int) -> None:
    text = generate(Spec(), number).text
    found = list(changes.mutants(text, random.Random(number)))
    (function,) = (part for part in ast.parse(text).body[-1:] if isinstance(part, ast.FunctionDef))
    is_one_call = len(function.body) == 2  # its docstring, and what it returns
    assert len(found) >= 2 or is_one_call
    for _, mutant in found:
        ast.parse(mutant)
        assert mutant != text
        rewritten = changes.rewritten(mutant, random.Random(number))
        assert len(ast.parse(rewritten).body) == len(ast.parse(text).body)


def program(number: int) -> dict[str, object]:
    """A row with a program; one of five is in `test`, and number 4 ends its process."""
    source = f"""\
import jax.numpy as jnp


def f(x):
    scaled = {number + 2}.5 * jnp.sin(x)
    total = jnp.sum(scaled, axis=1) + 0.0 * jnp.sum(x, axis=-1)
    return total / jnp.max(x, axis=0)[0]
"""
    source = "import os\nos._exit(1)\n" if number == 4 else source
    return row(number, source_code=source, x64=False)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose programs have changes without an effect: of `axis=-1`, and of `0.0 *`."""
    out = tmp_path_factory.mktemp("same") / "pairs"
    dataset(out, map(program, range(15)), "jsonl")
    return out


@pytest.mark.slow
def test_pairs_are_proved_and_scored(pairs: Path) -> None:
    asked = QuestionSet("same-program", pairs, python=sys.executable)
    known = list(questions(asked, with_answers=True))
    assert len(known) == 8  # of rows 9 and 14
    assert [each["answer"] for each in known].count(True) == 4
    for each in known:
        same, different = (
            each["proof"] == "same jaxpr and results",
            each["change"] in changes.CHANGES,
        )
        assert (same, different) == (each["answer"], not each["answer"])
        assert each["first"] != each["second"]
    truth = {each["id"]: each["answer"] for each in known}
    assert evaluate(asked, truth).scores == {"accuracy": 1.0}
    constant = evaluate(asked, dict.fromkeys(truth, True))
    assert constant.scores == {"accuracy": 0.5}
    assert sum(constant.reasons.values()) == 4
    assert all(reason.endswith("was called the same") for reason in constant.reasons)
    own = {each["id"]: each["prediction"] for each in baseline(asked, "jaxsight")}
    assert evaluate(asked, own).scores["accuracy"] >= 0.5


class AnsweringWorkers(TaskWorkers):
    """Workers that have an answer already; `asked` are the actions of requests."""

    def __init__(self, answer: dict[str, object], jax: str) -> None:
        super().__init__(sys.executable)
        self._answers = {"versions": {"versions": {"jax": jax}}, "compare": answer}
        self.asked: list[str] = []

    def ask(self, request: dict[str, object], *, x64: bool, purpose: str = "") -> dict[str, object]:
        """Return the answer."""
        self.asked.append(str(request["action"]))
        return self._answers[self.asked[-1]]


PROVED = {"proved": [{"text": "x = 1\n", "same": True, "change": "", "proof": "same"}]}


def proofs(
    answer: dict[str, object], number: int = 0, *, jax: str = "0.12.0", x64: bool = True
) -> tuple[list[dict[str, object]], int]:
    """What a new process knows of a request, and how many times it asks for a proof."""
    workers = AnsweringWorkers(answer, jax)
    found = PairProofs(workers).of({"action": "compare", "number": number}, x64=x64)
    return found, workers.asked.count("compare")


@pytest.mark.usefixtures("cold_cache")
def test_a_pair_is_proved_once() -> None:
    proved = PROVED["proved"]
    assert [proofs(PROVED), proofs(PROVED)] == [(proved, 1), (proved, 0)]
    assert proofs(PROVED, 1) == (proved, 1)
    assert proofs(PROVED, jax="0.13.0") == (proved, 1)
    assert proofs(PROVED, x64=False) == (proved, 1)


@pytest.mark.usefixtures("cold_cache")
def test_what_was_not_proved_is_tried_again() -> None:
    died: dict[str, object] = {"rejected": "hang", "message": "more than 60 s"}
    assert [proofs(died), proofs(PROVED)] == [([], 1), (PROVED["proved"], 1)]
    assert [proofs({"proved": []}, 1), proofs(PROVED, 1)] == [([], 1), ([], 0)]


@pytest.mark.usefixtures("cold_cache")
def test_a_damaged_proof_is_made_again() -> None:
    proofs(PROVED)
    folder = cache_folder("dataset-pairs")
    assert folder is not None
    (file,) = folder.rglob("*.pairs")
    file.write_bytes(file.read_bytes().replace(b"true", b"null"))
    assert proofs(PROVED) == (PROVED["proved"], 1)
