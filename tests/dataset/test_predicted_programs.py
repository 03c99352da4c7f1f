"""Predicted programs: equal ones, others, and code that means harm."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from jaxsight.dataset import QuestionSet, baseline, evaluate, questions
from jaxsight.dataset.tasks.programs import ProgramJudge
from jaxsight.dataset.tasks.workers import TaskWorkers
from tests.dataset.tables.conftest import jaxsight
from tests.dataset.tables.synthetic import dataset, row, target

SOURCE = """\
import jax.numpy as jnp


def f(x):
    total = jnp.sum(x, axis=1)
    return jnp.sum(jnp.sort(total)) * jnp.sin(x)
"""
FASTER = SOURCE.replace("jnp.sort(total)", "total")
QUESTION = {
    "function": "f",
    "arguments": '{"x": {"dtype": "float32", "shape": [3, 4], "values": "normal"}}',
    "x64": False,
}


@pytest.fixture(scope="module")
def judge() -> Iterator[ProgramJudge]:
    """A judge whose patience and memory are short."""
    with TaskWorkers(sys.executable, seconds=25.0, memory=3 << 30) as workers:
        yield ProgramJudge(workers)


@pytest.mark.slow
def test_an_equal_program_is_equal_and_measured(judge: ProgramJudge) -> None:
    found = judge.judge(SOURCE.replace("total", "sums"), QUESTION, SOURCE)
    assert (found["difference"], found["is_exact"]) == ("", True)
    assert found["before"] == found["after"]
    found = judge.judge(FASTER, QUESTION, SOURCE)
    assert (found["difference"], found["is_exact"]) == ("", False)
    assert found["after"]["kernel_count"] < found["before"]["kernel_count"]


def mark() -> str:
    return f"{os.environ.get('TMPDIR', '/tmp')}/jaxsight-mark-{os.getpid()}"


EMPTY = "import jax.numpy as jnp\ndef f(x):\n"
LOOP = """
import jax

def f(x):
    first = x.astype(int)[0, 0] ** 2
    return x * jax.lax.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 7, first)
"""
FORGED = """
import json
import os
for descriptor in range(3, 20):
    try:
        os.write(descriptor, b'{"stablehlo": "", "results": "", "serial": 1}\\n' * 3)
    except OSError:
        pass
"""
WRONG = {
    "other values": (SOURCE.replace("sin", "cos"), "differs"),
    "values of the row alone": (
        f"{EMPTY}    return jnp.where(x[0, 0] == x[0, 0] + 1, x, jnp.float32(0.5) * x)\n",
        "differs",
    ),
    "other shapes": (f"{EMPTY}    return x[0]\n", "differs"),
    "other dtypes": (f"{EMPTY}    return x.astype(jnp.bfloat16)\n", "differs"),
    "more results": (f"{EMPTY}    return x, x\n", "differs"),
    "no function": ("x = 1\n", "cannot be loaded"),
    "no Python": ("def f(:", "cannot be loaded"),
    "an error": (f"{EMPTY}    raise ValueError\n", "cannot be traced"),
    "no array": (f"{EMPTY}    return 'text'\n", "cannot be traced"),
    "an exit": ("raise SystemExit\n", "ended its process"),
    "an end": ("import os\nos._exit(0)\n", "ended its process"),
    "a loop": ("while True:\n    pass\n", "took too long"),
    "a loop on the device": (
        LOOP,
        "took too long",
    ),
    "memory": ("x = [b'x' * (1 << 28) for _ in range(100)]\n", "used too much memory"),
    "a file": (f"open({mark()!r}, 'w').close()\n", "cannot be loaded"),
    "a process": (f"import os\nos.system('touch {mark()}')\n", "cannot be loaded"),
    "megabytes": (f"print('x' * (64 << 20))\n{SOURCE.replace('sin', 'cos')}", "differs"),
    "another answer": (f"{FORGED}{SOURCE}", "ended its process"),
    "a callback": (
        f"import jax\n{EMPTY}    return jax.pure_callback(lambda x: x, x, x)\n",
        "calls a foreign function",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_program_has_a_reason_and_no_effect(name: str, judge: ProgramJudge) -> None:
    prediction, reason = WRONG[name]
    found = judge.judge(prediction, QUESTION, SOURCE)
    assert found["wrong"] == reason, found
    assert not Path(mark()).exists()


@pytest.mark.slow
def test_a_judge_goes_on_after_what_it_survived(judge: ProgramJudge) -> None:
    switched = f"import jax\njax.config.update('jax_enable_x64', True)\n{SOURCE}"
    for prediction in (WRONG["another answer"][0], switched, SOURCE):
        found = judge.judge(prediction, QUESTION, SOURCE)
    assert found["is_exact"]


def compiled(number: int) -> dict[str, object]:
    """A row whose program has a kernel too many."""
    text = SOURCE.replace("axis=1", f"axis={number % 2}")
    figures = target("cpu", 3)
    return row(
        number, source_code=text, x64=False, targets=[figures], arguments=QUESTION["arguments"]
    )


@pytest.mark.slow
def test_programs_are_predicted_and_scored(tmp_path: Path) -> None:
    out = tmp_path / "pairs"
    dataset(out, map(compiled, range(10)), "jsonl")
    asked = QuestionSet("improve", out, python=sys.executable)
    faster = {
        each["id"]: each["source_code"].replace("jnp.sort(total)", "total")
        for each in questions(asked)
    }
    found = evaluate(asked, faster)
    assert found.scores["improved"] == found.scores["equal"] == 1.0
    assert 0.0 < found.scores["kernels_saved"] < 1.0
    same = {each["id"]: each["prediction"] for each in baseline(asked, "constant")}
    found = evaluate(asked, same)
    assert (found.scores["improved"], found.scores["equal"]) == (0.0, 1.0)
    assert found.reasons == {"no better": 2}
    assert found.judged_with["jax"] == metadata.version("jax")
    asked = QuestionSet("source-from-ir", out, python=sys.executable)
    known = {each["id"]: each["answer"] for each in questions(asked, with_answers=True)}
    first = next(iter(known))
    found = evaluate(asked, {**known, first: 3})
    assert found.scores == {"equal": 0.5, "exact": 0.5}
    assert found.reasons == {"expected the text of a Python module": 1}
    assert found.copies == 1  # half of the sources are those of rows of `train`


SORTED = '''\
import jax.numpy as jnp


def f(x):
    """Find the largest value of each row.

    Example inputs:
        x: f32[4, 500]
    """
    return jnp.sort(x, axis=-1)[..., -1]
'''


@pytest.mark.slow
def test_proved_fixes_are_a_baseline_where_they_save_something(tmp_path: Path) -> None:
    fixed = SORTED.replace("jnp.sort(x, axis=-1)[..., -1]", "jnp.max(x, axis=-1)")
    shape = '{"x": {"dtype": "float32", "shape": [4, 500], "values": "normal"}}'
    sources = {4: SORTED, 9: fixed}
    rows = [row(n, source_code=sources.get(n, fixed), arguments=shape) for n in range(10)]
    dataset(tmp_path / "pairs", rows, "jsonl")
    options = ("pairs", "-o", "own.jsonl", "--python", sys.executable)
    done = jaxsight("dataset", "baseline", "improve", "jaxsight", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    own = [json.loads(line) for line in (tmp_path / "own.jsonl").read_text().splitlines()]
    assert own == [
        {"id": "improve/4", "prediction": fixed},
        {"id": "improve/9", "prediction": fixed},
    ]
    asked = QuestionSet("improve", tmp_path / "pairs", python=sys.executable)
    found = evaluate(asked, {each["id"]: each["prediction"] for each in own})
    assert found.scores["improved"] == 0.5
    assert found.scores["equal"] == 1.0
