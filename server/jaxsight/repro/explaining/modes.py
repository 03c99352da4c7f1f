"""Whether a repro fails with and without `jax.jit`, and under other options of JAX."""

from __future__ import annotations

from jaxsight.repro.explaining.trials import Condition, Trials, sets
from jaxsight.repro.explanation import FAILS, JIT, OTHER, PASSES, UNTRIED, Row, Table

_EAGER = Condition((("JAX_DISABLE_JIT", "1"),))
_OPTIONS = (
    (("JAX_ENABLE_X64", "1"), "with 64-bit types"),
    (("JAX_DEFAULT_MATMUL_PRECISION", "highest"), "with the highest precision of products"),
    (("JAX_DISABLE_MOST_OPTIMIZATIONS", "1"), "without most optimizations"),
)

_CONCLUSIONS = {
    PASSES: "the failure needs `jax.jit`",
    FAILS: "the failure occurs with and without `jax.jit`",
    OTHER: "without `jax.jit`, the program fails in another way",
}


def table(trials: Trials, text: str) -> Table:
    """Return the table of jit, eager and other options for a repro of this `text`."""
    rows = [trials.row(Condition(), "as it is")]
    eager = _row(trials, _EAGER, "without `jax.jit`", text)
    rows.append(eager)
    rows += [_row(trials, Condition((option,)), subject, text) for option, subject in _OPTIONS]
    return Table(JIT, tuple(rows), _CONCLUSIONS.get(eager.verdict, ""))


def _row(trials: Trials, condition: Condition, subject: str, text: str) -> Row:
    name = condition.variables[0][0]
    if sets(text, name):
        return Row(subject, UNTRIED, f"the file sets {name.lower()}")
    return trials.row(condition, subject)
