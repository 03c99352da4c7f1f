"""Modules of Flax's Linen as proposed inputs: methods need one that is bound to variables.

A module is bound to none, and to keys of random numbers, so that the call creates its parameters
with the shapes that it needs, as `init` does (`Module.bind` and `Scope.param` in `flax/linen`).
"""

from __future__ import annotations

from jaxsight.examples.proposals.proposal import ExpressionGuess, Proposal
from jaxsight.source.functions import Function
from jaxsight.source.module import Module
from jaxsight.wire.observations import Failure

_UNBOUND = (
    "Can't call compact methods on unbound modules",
    "Can't access variables on unbound modules",
    "Can't access unbound modules",
)


def is_unbound(failure: Failure) -> bool:
    """Return whether a method failed because its module is not bound.

    Attributes of `setup` do not exist then; Linen quotes their names with `"`.
    """
    message = failure.message
    has_no_setup = message.startswith('"') and '" object has no attribute "' in message
    return message.startswith(_UNBOUND) or (failure.type == "AttributeError" and has_no_setup)


def bound(proposal: Proposal, function: Function, module: Module) -> Proposal:
    """Return a proposal whose module is bound."""
    name = function.parameters[0].name if function.parameters else ""
    guess = proposal.examples.get(name)
    if not isinstance(guess, ExpressionGuess) or ".bind(" in guess.source:
        return proposal
    key = f"{_random(module)}.key(0)"
    rngs = f'{{"params": {key}, "dropout": {key}}}'
    source = f"{guess.source}.bind({{}}, rngs={rngs}, mutable=True)"
    return proposal.with_example(name, ExpressionGuess(source))


def _random(module: Module) -> str:
    """Return `jax.random` by a name that a module has for it."""
    imports = (pair for c in module.chunks if c.broken is None for pair in c.name_effects.imports)
    names = {name: alias for alias, name in imports}
    if "jax" in names:
        return f"{names['jax']}.random"
    return names.get("jax.random", '__import__("jax").random')
