"""Inverses of branches whose index is known, from those of the branches' programs."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import lax

from jaxsight_source.compat.staging import opened
from jaxsight_source.inversion.inner_programs import (
    Values,
    by_node,
    culprit,
    index_values,
    known_positions,
)
from jaxsight_source.inversion.network import Blocked, Network, Placed, Plan, Solution, inverses


@inverses("cond")
def _cond(placed: Placed, network: Network) -> Solution | Blocked:
    choice, *operands = placed.inputs
    if not network.knows(choice):
        return Blocked("selects its branch by an unknown value")
    inputs = known_positions(network, operands)
    outputs = known_positions(network, placed.outputs)
    solved = [
        network.solver.solved(opened(branch), inputs, outputs, index_values(network, operands))
        for branch in placed.params["branches"]
    ]
    determined = [
        index
        for index in range(len(operands))
        if index not in inputs and all(body.knows(body.inputs[index]) for body in solved)
    ]
    if not determined:
        return culprit(solved, "has branches that do not determine its unknown operands")
    plans = [body.plan(body.inputs[index] for index in determined) for body in solved]

    def branch(body: Network, plan: Plan) -> Callable[[Values, Values], list[jax.Array]]:
        def run(arguments: Values, results: Values) -> list[jax.Array]:
            return plan(
                by_node(body.inputs, inputs, arguments) | by_node(body.outputs, outputs, results)
            )

        return run

    branches = [branch(body, plan) for body, plan in zip(solved, plans, strict=True)]

    def compute(index: jax.Array, *values: jax.Array) -> list[jax.Array]:
        arguments, results = values[: len(inputs)], values[len(inputs) :]
        return list(lax.switch(index, branches, arguments, results))

    reads = (choice, *(operands[i] for i in inputs), *(placed.outputs[i] for i in outputs))
    return Solution(reads, tuple(operands[index] for index in determined), compute)
