"""How functions of files are counted and compared with real runs, and when figures are worse."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.unprepared import figures
from tools.unprepared.comparing import real_calls, verdict
from tools.unprepared.corpora import CountedFunction, functions
from tools.unprepared.figures import CorpusFigures
from tools.unprepared.opened import ShownFunction

PROGRAM = """\
import jax
import jax.numpy as jnp


class Model:
    def apply(self, params, x):
        return jnp.dot(x, params["w"])


def pure(x):
    return x + 1


@jax.vmap
def row(x):
    def inner(y):
        return jnp.sin(y)

    return inner(x)


if __name__ == "__main__":
    Model().apply({"w": jnp.ones((3, 2))}, jnp.ones((4, 3)))
    row(jnp.ones((5, 6)))
"""


def shown(name: str, origin: str = "observed", **inputs: str) -> ShownFunction:
    return ShownFunction(CountedFunction(name, 0, 0, 1), True, "", origin, inputs)


def test_functions_that_mention_jax_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(PROGRAM)
    found = {each.name: (each.line, each.column) for each in functions(path)}
    assert found == {"Model.apply": (5, 8), "row": (14, 4), "row.<locals>.inner": (15, 8)}


def test_shown_inputs_are_compared_with_those_of_a_real_run(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(PROGRAM)
    calls = real_calls(sys.executable, path, path, tmp_path, 120.0)
    as_called = shown("Model.apply", params="{'w': f32[3,2]}", x="f32[4,3]")
    assert verdict(as_called, calls) == "equal"
    assert verdict(shown("Model.apply", "assumed", x="f32[B,D]"), calls) == "rank equal"
    assert verdict(shown("row", x="f32[6]"), calls) == "equal"  # as its body sees it
    assert verdict(shown("row", x="f32[5,6]"), calls) == "wrong"
    assert verdict(shown("pure", x="f32[5,6]"), calls) == "not compared"


def test_figures_count_origins_reasons_and_verdicts() -> None:
    silent = ShownFunction(CountedFunction("f", 0, 0, 1), False, "data `x` were not loaded", "", {})
    without = ShownFunction(CountedFunction("g", 0, 0, 1), False, figures.NO_CAUSE, "", {})
    rows: list[figures.Row] = [
        ("a.py", shown("h", x="f32[2]"), "equal"),
        ("a.py", shown("i", "assumed", x="f32[N]"), "wrong"),
        ("b.py", silent, "not compared"),
        ("b.py", without, "not compared"),
    ]
    found = figures.figures(rows)
    assert (found.files, found.functions, found.shown, found.without_cause) == (2, 4, 2, 1)
    assert found.compared == {"assumed wrong": 1, "exact equal": 1}
    assert figures.reasons(rows) == {"data `…` were not loaded": 1, figures.NO_CAUSE: 1}


def test_figures_are_stored_and_only_clearly_worse_ones_are_named(tmp_path: Path) -> None:
    file = tmp_path / "stored.json"
    figures.store({"a": CorpusFigures(2, 100, 50)}, file)
    figures.store({"b": CorpusFigures(1, 10, 5, 1, {"observed": 5}, {"exact equal": 4})}, file)
    before = figures.read(file)
    assert before["b"].compared == {"exact equal": 4}
    assert not [*figures.worse(CorpusFigures(2, 100, 45), before["a"])]
    assert [*figures.worse(CorpusFigures(2, 100, 35), before["a"])] == ["shown: 35 %, was 50 %"]
    wrong = CorpusFigures(1, 10, 5, 1, {"observed": 5}, {"exact wrong": 2})
    assert [*figures.worse(wrong, before["b"])] == ["wrong exact inputs: 2, were 0"]
