"""JX449: a Flax module is applied with variables that do not fit it."""

from __future__ import annotations

from jaxsight.rules.error_table import ErrorTable
from jaxsight.rules.rule import Rule

RULE = Rule(__name__, "Flax module applied with variables or random numbers that do not fit it.")

ERRORS = ErrorTable(
    RULE,
    "ScopeParamShapeError",
    "ScopeCollectionNotFound",
    "ScopeParamNotFoundError",
    "InvalidRngError",
    "ModifyScopeVariableError",
    "ApplyScopeInvalidVariablesTypeError",
    "ApplyScopeInvalidVariablesStructureError",
    "CallCompactUnboundModuleError",
)
"""Classes of `flax.errors` (Flax 0.8 to 0.12)."""

ERRORS.table(r"""
For parameter \"(?P<name>\w+)\" in \"(?P<module>[^\"]*)\", the given initializer is expected to
        generate shape (?P<wanted>\([\d, ]*\)), but the existing parameter it received has shape
        (?P<given>\([\d, ]*\))
    parameter {name:q20} of {module:q30} has shape {given}, but the input needs {wanted}
    help: initialize with an input of the shape that `apply` gets, and check the last axis
    note: `init` makes the parameters for the shape of its example input
Initializer expected to generate shape (?P<given>\([\d, ]*\)) but got shape (?P<wanted>\([\d, ]*\))
        instead for parameter \"(?P<name>\w+)\" in \"(?P<module>[^\"]*)\"
    parameter {name:q20} of {module:q30} does not fit the input: {given} and {wanted}
    help: initialize with an input of the shape that `apply` gets, and check the last axis
    note: `init` makes the parameters for the shape of its example input
Tried to access \"(?P<name>\w+)\" from collection \"(?P<collection>\w+)\" in \"(?P<module>[^\"]*)\"
    variables have no {collection:q20} with {name:q20} for the module {module:q30}
    help: pass what `init` returned: `module.apply(variables, x)`, or `{{'params': params}}` for
        parameters alone
Could not find parameter named \"(?P<name>\w+)\" in scope \"(?P<module>[^\"]*)\"
    variables have no parameter {name:q20} for the module {module:q30}
    help: initialize the module as it is now: layers that were added or renamed have no parameters
.*? needs PRNG for \"(?P<name>\w+)\"
    module draws random numbers for {name:q20}, but gets no key
    help: pass a key: `module.apply(variables, x, rngs={{"{name}": key}})`, or `deterministic=True`
        for evaluation
Cannot update variable \"(?P<name>\w+)\" in \"(?P<module>[^\"]*)\" because collection
        \"(?P<collection>\w+)\" is immutable
    module updates {name:q20} of the collection {collection:q20}, which is immutable
    help: pass `mutable=["{collection}"]`, and keep the second result of `apply`; for evaluation
        pass `use_running_average=True` or its like
(?:The first argument passed to an apply function should be a dictionary of collections|Expect the
        `variables`)
    {expression:q} gets parameters where Flax needs collections
    help: pass `{{'params': params}}`
Can't call compact methods on unbound modules
    {expression:q} calls a module that has no parameters yet
    help: make them with `variables = module.init(key, x)`, and call `module.apply(variables, x)`
""")
