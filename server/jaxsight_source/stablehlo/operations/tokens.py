"""Tokens, and transfers between the host and other devices that they order.

JAX orders effects as a program has them, so tokens are not written: they have no value. JAX has no
function for transfers; as calls of foreign functions, they are named with their attributes.
"""

from __future__ import annotations

import jax

from jaxsight_source.compat.lowered.mlir import transfer_configuration
from jaxsight_source.stablehlo.evaluation import OperationStep, Results, reads
from jaxsight_source.stablehlo.program import OpaqueCall


@reads("stablehlo.create_token", "stablehlo.after_all")
def token(_: OperationStep) -> Results:
    return [None]


@reads("stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv")
def transfer(step: OperationStep) -> Results:
    name = step.operation.name
    given = transfer_configuration(step.operation)
    step.evaluation.opaque.append(OpaqueCall(name, tuple(given.items())))
    arrays = [operand for operand in step.operands if operand is not None]
    call = jax.ffi.ffi_call(name, step.structs, has_side_effect=True, custom_call_api_version=4)
    return step.with_tokens(call(*arrays, **given))
