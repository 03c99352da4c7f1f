"""Programs are run, and what they took has the columns of the table of measured times."""

from __future__ import annotations

import pytest

from jaxsight.dataset.generating import generate
from jaxsight.dataset.program import Array, Program
from jaxsight.dataset.rows.describe import Rejected
from jaxsight.dataset.schema import TIMINGS
from jaxsight.dataset.spec import Spec
from jaxsight.dataset.timings import runs
from jaxsight.measuring import timing

OF_ROW = {"schema_version", "number", "split", "canonical_digest", "processor"}
MODULE = """\
import jax.numpy as jnp


def f(x, pair):
    return {"a": jnp.tanh(x) @ pair["w"], "b": (x.sum(), pair["n"])}
"""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "WARM_UP", 0.01)


@pytest.fixture
def program() -> Program:
    arguments = {
        "x": Array("float32", (3, 4), "normal"),
        "pair": {"w": Array("float32", (4,), "normal"), "n": Array("int32", (), "integers:5")},
    }
    return Program(0, MODULE, "f", arguments, "math", "example")


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_both_directions_are_measured(direction: str, program: Program) -> None:
    found = runs.time(program, direction, 0.02)
    assert {*found, *OF_ROW} == {column.name for column in TIMINGS}
    assert (found["direction"], found["devices"]) == (direction, 1)
    assert 0 < found["least_seconds"] <= found["quartile1_seconds"] <= found["median_seconds"]
    assert found["median_seconds"] <= found["quartile3_seconds"]
    assert found["overhead_seconds"] > 0


@pytest.mark.parametrize(
    ("text", "direction", "cause"),
    [
        ("def f(x, pair):\n    return x > 0\n", "backward", "no derivative"),
        ("def f(x, pair):\n    return y\n", "forward", "trace"),
        ("1 / 0\n", "forward", "load"),
    ],
)
def test_what_cannot_be_measured_has_a_cause(
    text: str, direction: str, cause: str, program: Program
) -> None:
    program = Program(0, text, "f", program.arguments, "math", "example")
    with pytest.raises(Rejected) as rejected:
        runs.time(program, direction, 0.02)
    assert rejected.value.cause == cause


def test_interpreted_kernels_are_not_measured() -> None:
    program = generate(Spec(categories=("pallas",)), 0)
    with pytest.raises(Rejected, match="interpreted"):
        runs.time(program, "forward", 0.02)
