"""JX102 reports what was measured, and only that."""

from __future__ import annotations

import pytest

from jaxsight.rules.jx102_folded_while_compiling import rule as jx102_folded_while_compiling
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import is_worth_measuring
from jaxsight.rules.rule import Violation
from jaxsight.targets.target import parse
from jaxsight.wire.messages.compiling import Folding
from jaxsight.wire.messages.replies import Fold
from jaxsight.wire.program import Body, TracedProgram

SORT = Fold("0", "sort", 200_000, 800_000, 25.0, True)
SINE = Fold("1", "sin", 200_000, 800_000, 0.3, False)


def findings(folding: Folding | None, *folds: Fold) -> list[Violation]:
    view = ProgramView(
        name="f",
        program=TracedProgram((), Body("", (), (), ()), (), False),
        folds=folds,
        folding=folding,
        warnings=(),
        quote={"0": "jnp.sort(TABLE)", "1": "jnp.sin(TABLE)"}.__getitem__,
        around=lambda _: (),
        target=parse("cpu"),
    )
    return list(jx102_folded_while_compiling.find(view))


def test_the_message_has_both_measurements() -> None:
    (found,) = findings(Folding(12.4, 0.14), SINE, SORT)
    assert found.message == "compiling for cpu takes 12 s with constant folding, 0.1 s without"
    assert found.notes[0] == "XLA folds `jnp.sort(TABLE)` (781.2 KiB)"
    assert (found.at, found.severity) == ("0", "error")
    assert found.data == 800_000


def test_a_measurement_that_was_ended_is_a_lower_bound() -> None:
    (found,) = findings(Folding(15.0, 0.1, is_ended=True), SORT)
    assert found.message.startswith("compiling for cpu takes more than 15 s with constant folding")


def test_several_folds_are_reported_once() -> None:
    (found,) = findings(Folding(3.0, 0.1), SINE, SINE)
    assert found.notes[0] == "XLA folds `jnp.sin(TABLE)` (781.2 KiB) and 1 more"
    assert found.severity == ""


@pytest.mark.parametrize(
    "folding",
    [None, Folding(0.9, 0.1), Folding(5.0, 3.0), Folding(1.2, 0.4), Folding(0.5, 9.0)],
    ids=str,
)
def test_what_was_not_measured_to_be_slow_is_not_reported(folding: Folding | None) -> None:
    assert findings(folding, SORT) == []


@pytest.mark.parametrize(
    ("folds", "worth"),
    [((), False), ((SINE,), True), ((SORT,), True)],
    ids=["none", "sine", "sort"],
)
def test_what_may_take_long_is_measured(folds: tuple[Fold, ...], worth: bool) -> None:
    assert is_worth_measuring(folds) == worth
