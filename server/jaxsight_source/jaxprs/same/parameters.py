"""Comparison of the parameters of two equations of one primitive."""

from __future__ import annotations

from collections.abc import Callable

from jaxsight_source.compat.inner import part_name
from jaxsight_source.compat.jaxpr_types import Params, Primitive
from jaxsight_source.compat.staging import Program, opened
from jaxsight_source.jaxprs.same.derivatives import RuleComparison
from jaxsight_source.jaxprs.same.difference import Parted, require_same, step_to_inner
from jaxsight_source.jaxprs.same.values import ValueComparison, is_of_jax, plainly_equal

_IGNORED: dict[str, frozenset[str]] = {
    "jit": frozenset({"name"}),
    "pjit": frozenset({"name"}),
    "reduce": frozenset({"computation"}),  # the function that became `jaxpr`
    "linear_call": frozenset({"transpose_thunk"}),  # compared as a program
    "custom_vmap_call": frozenset({"rule"}),
    "custom_linear_solve": frozenset({"const_lengths", "jaxprs"}),
    "custom_jvp_call": frozenset({"call_jaxpr", "num_consts", "jvp_jaxpr_fun"}),
    "custom_vjp_call": frozenset(
        {"call_jaxpr", "num_consts", "fwd_jaxpr_thunk", "bwd", "out_trees"}
    ),
    "pallas_call": frozenset({"debug"}),
    "shard_map": frozenset({"debug_info"}),
}
"""Parameters of JAX's own primitives that do not affect the results, or that are compared
separately. No parameter of another package's primitive is ignored: there, `debug` may mean
anything.
"""


class ParameterComparison:
    """Compares the parameters of equations; raises `Parted` where they differ.

    Args:
        values: compares parameters of any type.
        rules: compares the rules of custom derivatives.
        compare_programs: compares the programs of other functions; the first argument is their
            name.
    """

    def __init__(
        self,
        values: ValueComparison,
        rules: RuleComparison,
        compare_programs: Callable[[str, Program, Program], None],
    ) -> None:
        self._values = values
        self._rules = rules
        self._compare_programs = compare_programs

    def compare(self, primitive: Primitive, lhs: Params, rhs: Params) -> None:
        name = primitive.name
        ignored = _IGNORED.get(name, frozenset())
        if ignored and not is_of_jax(primitive):
            ignored = frozenset()
        # The functions among parameters, and what selects them.
        match name:
            case "ffi_call":
                require_same("attributes of ffi_call", _attribute_types(lhs), _attribute_types(rhs))
            case "linear_call":
                first, second = (opened(side["transpose_thunk"]()[0]) for side in (lhs, rhs))
                self._compare_programs("transpose", first, second)
            case "custom_vmap_call" if not _sequential(lhs["rule"], rhs["rule"]):
                part = "rule of custom_vmap_call"
                self._values.compare(part, lhs["rule"].rule, rhs["rule"].rule)
        if lhs.keys() != rhs.keys():
            raise Parted(f"parameters of {name}", sorted(lhs), sorted(rhs))
        for key, value in lhs.items():
            if key not in ignored and not plainly_equal(value, rhs[key]):
                with step_to_inner(part_name(key)):
                    self._values.compare(f"{key} of {name}", value, rhs[key])
        if name in ("custom_jvp_call", "custom_vjp_call"):
            self._rules.compare(name, lhs, rhs)


def _attribute_types(params: Params) -> list[str]:
    """Return the types of a foreign function's attributes, which select the function."""
    return [f"{name} {type(value).__name__}" for name, value in params.get("attributes") or ()]


def _sequential(*rules: object) -> bool:
    """Return whether all rules are those of `sequential_vmap`, which follow from the function."""
    return all(
        str(getattr(getattr(rule, "rule", None), "__qualname__", "")).startswith("sequential_vmap.")
        for rule in rules
    )
