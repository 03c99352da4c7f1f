"""Shards: what they contain, what a program that dies costs, and that nothing else matters."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jaxsight_dataset.making.engines import Local
from jaxsight_dataset.making.make import CannotMake, DatasetResult, Store, generate
from jaxsight_dataset.making.selection import SPLITS, Selection, split_of
from jaxsight_dataset.making.shards import ShardTask, make
from jaxsight_dataset.making.worker_process import WorkerDied, WorkerProcess
from jaxsight_dataset.program import Array, RowProgram
from jaxsight_dataset.spec import InvalidSpec, Spec

TEXT = '''\
import jax
import jax.numpy as jnp


def scaled_sum(x, weights):
    """Add up scaled rows.

    Example inputs:
        x: f32[5, 3]
        weights: f32[3]
    """
    return jnp.sum(jnp.tanh(x) * weights, axis=1)
'''

PROGRAM = RowProgram(
    0,
    TEXT,
    "scaled_sum",
    {"x": Array("float32", (5, 3)), "weights": Array("float32", (3,), "positive")},
    "reductions",
    "scaled sum",
    is_differentiable=True,
)


def changed(old: str, new: str, **fields: Any) -> dict[str, Any]:
    """Return a source of the program with another text."""
    assert old in TEXT
    program = dataclasses.replace(PROGRAM, text=TEXT.replace(old, new), **fields)
    return {"program": json.loads(json.dumps(program.record())), "split": "train"}


def rows_of(*sources: dict[str, Any]) -> list[dict[str, Any]]:
    return make(ShardTask("rows", 0, sources, ("cpu",)), sys.executable, lambda: None)


def test_programs_survive_json() -> None:
    nested = {"state": ([Array("int32", (), "integers:4")], {"w": Array("key", (2,), "key")})}
    program = dataclasses.replace(PROGRAM, arguments=nested, labels=("non-finite",))
    assert RowProgram.of_record(json.loads(json.dumps(program.record()))) == program


LAST = "return jnp.sum(jnp.tanh(x) * weights, axis=1)"

RULE = """\
@jax.custom_jvp
def tripled(x):
    return x * 3.0


@tripled.defjvp
def _(primals, tangents):
    return tripled(primals[0]), tangents[0]


def scaled_sum("""

CALLBACK = """\
import numpy as np
    doubled = jax.pure_callback(lambda x: np.asarray(x) * 2, x, x)
    tiled = jnp.tile(doubled * weights, (8, 8))
    return tiled @ tiled.T"""

NARROW = """\
narrow = jnp.exp(x.astype(jnp.bfloat16)) * weights.astype(jnp.bfloat16) / 3
    return jnp.sum((narrow + narrow * narrow).astype(jnp.float32), axis=1)"""

SOLVE = """\
return jnp.linalg.solve(jnp.diag(1 + weights), (jnp.tanh(x) * weights).T) @ x"""

PRODUCT = """\
tiled = jnp.tile(jnp.tanh(x) * weights, (8, 8))
    return tiled @ tiled.T"""

VARIANTS = {
    "unused argument": changed(LAST, "return jnp.sum(x, axis=1)"),
    "constant result": changed(LAST, "return jnp.sum(x * weights), weights * 0"),
    "not finite": changed(LAST, "return jnp.log(-1 - weights) + jnp.sum(x)"),
    "trace": changed(LAST, "return undefined + jnp.sum(x * weights)"),
    "crash": changed(LAST, "import os; os._exit(3)"),
    "as it is": changed(LAST, LAST),
    "depends on tracing": changed(LAST, f"{LAST} * (1 + isinstance(x, jax.core.Tracer))"),
    "wrong gradient": changed("def scaled_sum(", RULE),
    "own derivative": changed("def scaled_sum(", RULE, labels=("own-derivative",)),
    "calls back": changed(LAST, CALLBACK, is_differentiable=False),
    "narrow inside": changed(LAST, NARROW),
    "linear algebra": changed(LAST, SOLVE),
}
for _name in ("wrong gradient", "own derivative"):
    _program = VARIANTS[_name]["program"]
    _program["text"] = _program["text"].replace("jnp.tanh(x)", "tripled(x)")


@pytest.fixture(scope="module")
def records() -> dict[str, dict[str, Any]]:
    """The record of each variant, all of one shard."""
    return dict(zip(VARIANTS, rows_of(*VARIANTS.values()), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("cause", list(VARIANTS)[:5])
def test_what_is_no_row_has_a_cause(records: dict[str, Any], cause: str) -> None:
    assert records[cause]["rejected"] == cause


def test_results_that_depend_on_tracing_are_a_disagreement(records: dict[str, Any]) -> None:
    row = records["depends on tracing"]["disagreement"]
    assert not row["test_success"]
    assert row["validation"]["eager"].startswith("differs: result 0 differs: ")
    assert row["validation"]["stablehlo"] == "passed"


def test_a_wrong_gradient_is_a_disagreement(records: dict[str, Any]) -> None:
    validation = records["wrong gradient"]["disagreement"]["validation"]
    assert validation["gradient"].startswith("differs: relative error")


def test_a_derivative_of_its_own_is_no_disagreement(records: dict[str, Any]) -> None:
    validation = records["own derivative"]["row"]["validation"]
    assert validation["gradient"] == "not compared: own derivative"


def test_stablehlo_that_calls_python_back_runs_in_no_other_process(records: dict[str, Any]) -> None:
    validation = records["calls back"]["row"]["validation"]
    assert validation["eager"] == "passed"
    assert validation["stablehlo"] == "not compared: it calls Python back"


def test_stablehlo_that_calls_lapack_runs_in_another_process(records: dict[str, Any]) -> None:
    assert records["linear algebra"]["row"]["validation"]["stablehlo"] == "passed"


@pytest.mark.slow
def test_stablehlo_has_to_be_what_the_results_are_of() -> None:
    program = changed(LAST, PRODUCT)
    with WorkerProcess(sys.executable) as first, WorkerProcess(sys.executable) as second:
        row = first.ask({"action": "describe", "targets": ["cpu"], **program})["row"]

        def outcome(stablehlo: str) -> str:
            given = {"digest": row["canonical_digest"], "results": row["_results"]} | row
            request = {**given, "action": "check", **program, "stablehlo": stablehlo}
            text: str = second.ask(request)["checks"]["stablehlo"]
            return text

        text = row["stablehlo"]
        assert outcome(text) == "passed"
        assert outcome(text.replace("tanh", "cosine")).startswith("differs: result 0")
        assert outcome(text.replace("  ", " ")) == "differs: it prints as another text"
        assert outcome(text[:-3]).startswith("cannot be parsed: ")


def test_narrow_numbers_inside_are_rounded_more(records: dict[str, Any]) -> None:
    assert records["narrow inside"]["row"]["validation"]["eager"] == "passed"


def test_a_row_says_what_became_of_a_program(records: dict[str, Any]) -> None:
    row = records["as it is"]["row"]
    assert row["source_code"] == TEXT
    assert row["input_shapes"] == [[5, 3], [3]]
    assert row["input_dtypes"] == ["float32", "float32"]
    assert row["primitives"] == ["broadcast_in_dim", "mul", "reduce_sum", "tanh"]
    assert row["test_success"]
    assert row["validation"].pop("one_device") == "not applicable"
    assert set(row["validation"].values()) == {"passed"}
    assert set(row["validation"]) == {
        *("eager", "finite", "gradient", "inputs", "jitted", "printed", "stablehlo")
    }
    assert row["directions"] == ["forward", "backward"]
    (label,) = row["targets"]
    assert label["target"] == "cpu"
    assert label["kernel_count"] == len(label["kernels"]) == 1
    assert label["argument_bytes"] == 4 * (15 + 3)
    assert label["output_bytes"] == 4 * 5
    assert row["jaxpr"].startswith("{ lambda ; a:f32[5,3] b:f32[3]. let")
    assert "stablehlo.tanh" in row["stablehlo"]
    assert "stablehlo.tanh" in row["backward_stablehlo"]
    tanh = next(each for each in row["alignment"] if each["primitive"] == "tanh")
    assert tanh["expression"] == "jnp.tanh(x)"
    assert (tanh["line"], tanh["column"]) == (12, 19)
    assert tanh["equation"] in label["kernels"][0]["equations"]
    assert all(f"%{name} = " in row["hlo"] for name in tanh["instructions"])
    assert tanh["instructions"]
    assert "def scaled_sum(" in row["normal_form"]
    folder = str(Path(__file__).parents[2])
    assert folder not in json.dumps(row)


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced() -> None:
    source = changed("return jnp.sum(", "import time; time.sleep(60)\n    return jnp.sum(")
    with WorkerProcess(sys.executable, seconds=8.0) as worker:
        with pytest.raises(WorkerDied) as died:
            worker.ask({"action": "survey", **source})
        assert died.value.cause == "hang"
        answer = worker.ask({"action": "survey", **changed("import jax\n", "import jax\n")})
    assert answer["equations"] == 4


def test_a_worker_that_uses_up_memory_is_replaced() -> None:
    line = "import numpy; kept = numpy.ones(1 << 28); import time; time.sleep(60)\n    "
    source = changed("return jnp.sum(", line + "return jnp.sum(")
    with (
        WorkerProcess(sys.executable, memory=1 << 30) as worker,
        pytest.raises(WorkerDied, match="more than 1024 MiB") as died,
    ):
        worker.ask({"action": "survey", **source})
    assert died.value.cause == "memory"


def record(program: str, structure: str, template: str) -> dict[str, Any]:
    minhash = [ord(program) * 100 + at for at in range(32)]
    return {"program": program, "structure": structure, "template": template, "minhash": minhash}


def test_no_program_is_chosen_twice_and_no_structure_for_two_splits() -> None:
    names = [f"template {index}" for index in range(40)]
    trained, tested = (
        next(name for name in names if split_of(name) == split) for split in ("train", "test")
    )
    selection = Selection()
    for number, each in enumerate(
        [
            record("a", "s", trained),
            record("a", "s", trained),
            record("b", "s", tested),
            record("c", "s", trained),
            {**record("d", "t", trained), "minhash": [0, *record("c", "", "")["minhash"][1:]]},
            {"rejected": "trace"},
        ]
    ):
        selection.add(number, each)
    assert selection.chosen == [(0, "train"), (3, "train")]
    assert selection.rejected == {
        "duplicate": 1,
        "structure of another split": 1,
        "near duplicate": 1,
        "trace": 1,
    }
    assert selection.structures == 1
    assert {split_of(name) for name in names} == set(SPLITS)


SPEC = Spec.of_record({"samples": 6, "shard_size": 3, "categories": ["arithmetic", "math"]})


def made(folder: Path, jobs: int) -> DatasetResult:
    engine = Local(sys.executable, jobs, lambda: None)
    return generate(SPEC, Store(folder, SPEC.record()), engine, lambda *_: None)


def test_surveyed_programs_are_not_counted_as_rows() -> None:
    def records(
        task: ShardTask, python: str, on_program: Callable[[], None]
    ) -> list[dict[str, Any]]:
        for _ in task.sources:
            on_program()
        return [{} for _ in task.sources]

    counted: list[str] = []
    engine = Local("python", 1, lambda: counted.append("program"), records)
    tasks = [ShardTask("survey", 0, ({}, {}, {})), ShardTask("rows", 0, ({}, {}))]
    assert [task for task, _ in engine.run(tasks)] == tasks
    assert len(counted) == 2


@pytest.mark.slow
def test_rows_depend_neither_on_jobs_nor_on_kills(tmp_path: Path) -> None:
    once = made(tmp_path / "once", 1)
    assert once.rows == SPEC.samples
    script = (
        "import sys; from pathlib import Path; from tests.jaxsight_dataset.test_making import made\n"
        f"made(Path({str(tmp_path / 'killed')!r}), 2)"
    )
    root = Path(__file__).parents[2]
    for after in (4.0, 12.0):
        process = subprocess.Popen([sys.executable, "-c", script], cwd=root, start_new_session=True)
        time.sleep(after)
        process.send_signal(signal.SIGKILL)
        process.wait()
    twice = made(tmp_path / "killed", 2)
    assert twice.record() == once.record()
    for name in once.shards:
        contents = [(tmp_path / run / "work" / name).read_bytes() for run in ("once", "killed")]
        assert contents[0] == contents[1]


def test_a_folder_has_one_dataset(tmp_path: Path) -> None:
    Store(tmp_path, {"spec": 1})
    with pytest.raises(CannotMake, match="another specification, seed or JAX"):
        Store(tmp_path, {"spec": 2})


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"sample": 3}, "unknown field 'sample'; expected one of samples, seed, categories"),
        ({"samples": 0}, "invalid samples 0; expected a positive integer"),
        ({"seed": "x"}, "invalid seed 'x'; expected a positive integer"),
        ({"categories": ["maths"]}, "invalid categories: 'maths'; expected one of arithmetic"),
        ({"dtypes": "float32"}, "invalid dtypes 'float32'; expected a list of names"),
    ],
)
def test_a_wrong_specification_is_reported(field: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec) as raised:
        Spec.of_record(field)
    assert str(raised.value).startswith(message)
