"""Proposals for functions of installed libraries; `python -m tests.proposals` has all of the lists."""

from __future__ import annotations

import pytest

from jaxsight.examples import choice
from jaxsight.examples.proposals.inference import infer
from jaxsight.source.module import Module
from tests.proposals.__main__ import PACKAGES, load, measure
from tests.proposals.choosing import eligible

TRACED = (
    "optax/losses/_regression.py:l2_loss",
    "equinox/nn/_attention.py:dot_product_attention_weights",
)


def test_proposals_are_valid_example_inputs() -> None:
    for library in ("optax", "flax", "jax.nn"):
        for chosen in eligible(PACKAGES, library)[::12]:
            module = Module.parse((PACKAGES / chosen.file).read_text(encoding="utf-8"))
            chunk, function = next(
                found for found in module.functions if found[1].qualname == chosen.function
            )
            proposal = infer(module, chunk, function)
            assert proposal is not None
            found = choice.of(function, sizes={}, project=proposal.text)
            assert (found.source, found.problems, str(chosen)) == ("project", (), str(chosen))


async def test_functions_of_libraries_are_traced() -> None:
    functions = [f for f in load("first") if f"{f.file}:{f.function}" in TRACED]
    if len(functions) != len(TRACED) or not all((PACKAGES / f.file).exists() for f in functions):
        pytest.skip("the libraries are not installed")
    measured = await measure(functions)
    assert [str(result.chosen) for result in measured if not result.shown] == []
