"""Methods of Flax Linen's modules, as functions of their variables."""

from __future__ import annotations

from jaxsight.tracer.calls.inputs import Inputs
from jaxsight.tracer.calls.parameters import named
from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.failures import UserError, failure
from jaxsight.tracer.states import linen


def applied(function: UserFunction, name: str, inputs: Inputs) -> tuple[UserFunction, Inputs]:
    """Return the call of a method in `Module.apply`, with the variables as its first argument.

    Raises:
        UserError: the module cannot be initialized with these inputs; its stage is `trace`.
    """
    module, *args = inputs.args
    method = name.rpartition(".")[2]
    try:
        call, arguments, kwargs = linen.applied(module, method, tuple(args), inputs.kwargs)
    except Exception as error:
        raise UserError(failure(error, "trace")) from error
    applied = UserFunction(call, False, None)
    return applied, Inputs(arguments, kwargs, named(applied, arguments, kwargs), inputs.warnings)
