"""Inverses of functions mapped over a mesh (`shard_map`, and so `pmap`), shard by shard."""

from __future__ import annotations

import jax
from jax import lax

from jaxsight_source.compat import control_flow
from jaxsight_source.compat.staging import opened
from jaxsight_source.inversion.inner_programs import by_node, culprit, known_positions
from jaxsight_source.inversion.network import Blocked, Network, Placed, Solution, inverses


@inverses("shard_map")
def _shard_map(placed: Placed, network: Network) -> Solution | Blocked:
    mapped = control_flow.shard_map(placed.params)
    inputs = known_positions(network, placed.inputs)
    outputs = known_positions(network, placed.outputs)
    body = network.solver.solved(opened(placed.params["jaxpr"]), inputs, outputs, {})
    determined = [
        index for index, node in enumerate(body.inputs) if index not in inputs and body.knows(node)
    ]
    if not determined:
        return culprit([body], "has shards that do not determine its unknown operands")
    plan = body.plan(body.inputs[index] for index in determined)

    def on_a_shard(*values: jax.Array) -> list[jax.Array]:
        arguments, results = values[: len(inputs)], values[len(inputs) :]
        return plan(
            by_node(body.inputs, inputs, arguments) | by_node(body.outputs, outputs, results)
        )

    undone = jax.shard_map(
        on_a_shard,
        mesh=mapped.mesh,
        in_specs=(*(mapped.in_specs[i] for i in inputs), *(mapped.out_specs[i] for i in outputs)),
        out_specs=[mapped.in_specs[index] for index in determined],
        axis_names=mapped.axes,
        check_vma=False,  # that an argument was replicated is not seen from the result
    )
    return Solution(
        (*(placed.inputs[i] for i in inputs), *(placed.outputs[i] for i in outputs)),
        tuple(placed.inputs[index] for index in determined),
        lambda *values: list(undone(*values)),
    )


@inverses("ppermute")
def _ppermute(placed: Placed, network: Network) -> Solution | Blocked:
    permutation, axis = placed.params["perm"], placed.params["axis_name"]
    size = control_flow.axis_size(placed.equation, axis)
    if len(permutation) != size:
        return Blocked(f"sends {len(permutation)} of {size} shards on and drops the others")
    back = [(target, source) for source, target in permutation]
    return Solution(
        placed.outputs,
        placed.inputs,
        lambda y: [lax.ppermute(y, axis, back)],  # type: ignore[no-untyped-call]
    )
