"""Comparison of the parameters of two equations of one primitive."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TypeVar

from jaxsight_source.compat import derivative_rules
from jaxsight_source.compat.derivative_rules import RuleFailed
from jaxsight_source.compat.inner import part_name
from jaxsight_source.compat.jaxpr_types import Aval, Params, Primitive
from jaxsight_source.compat.staging import Program, opened
from jaxsight_source.jaxprs.same.difference import Parted, require_same, step_to_inner
from jaxsight_source.jaxprs.same.values import ValueComparison, is_of_jax, plainly_equal
from jaxsight_source.options import DEEPEST_RULES

_IGNORED = {
    "jit": "name",
    "pjit": "name",
    "reduce": "computation",  # the function that became `jaxpr`
    "linear_call": "transpose_thunk",  # compared as a program
    "custom_vmap_call": "rule",
    "custom_linear_solve": "const_lengths jaxprs",
    "custom_jvp_call": "call_jaxpr num_consts jvp_jaxpr_fun",
    "custom_vjp_call": "call_jaxpr num_consts fwd_jaxpr_thunk bwd out_trees",
    "pallas_call": "debug",
    "shard_map": "debug_info",
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
        ignored = _IGNORED.get(name, "").split() if is_of_jax(primitive) else ()
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


Traced = TypeVar("Traced")


class RuleComparison:
    """Compares the derivative rules of functions; raises `Parted` where they differ.

    Args:
        values: compares the static arguments of rules.
        compare_rules: compares the programs of two rules; the first argument is their name.
        orders: compare rules up to this order only. By default, rules of more than three orders
            that are not the same functions are a difference.
    """

    def __init__(
        self,
        values: ValueComparison,
        compare_rules: Callable[[str, Program, Program], None],
        orders: int | None,
    ) -> None:
        self._values = values
        self._compare_rules = compare_rules
        self._orders = orders
        self.order = 0
        """How many derivative rules are around: the more there are, the less deeply programs
        are compared.
        """
        self._assumed: dict[tuple[Hashable, Hashable, tuple[Aval, ...]], int] = {}

    def compare(self, primitive: str, lhs: Params, rhs: Params) -> None:
        """Compare the derivative rules of two functions.

        Rules may call their own function, so a pair that is being compared counts as the same until
        a difference is found.
        """
        if derivative_rules.same_rule(lhs, rhs) or self._same_functions(lhs, rhs):
            return
        inputs = opened(lhs["call_jaxpr"]).jaxpr.invars[lhs["num_consts"] :]
        types = tuple(var.aval for var in inputs)
        pair = (derivative_rules.rule_identity(lhs), derivative_rules.rule_identity(rhs), types)
        assumed = self._assumed.get(pair)
        if assumed is not None and assumed <= self.order:
            return
        if self._orders is not None and self.order >= self._orders:
            return
        if self.order >= DEEPEST_RULES:
            raise Parted("rule", f"one of order {self.order + 1}", "another function")
        self._assumed[pair] = self.order
        self.order += 1
        try:
            if primitive == "custom_jvp_call":
                self._jvp_rules(lhs, rhs)
            else:
                self._vjp_rules(lhs, rhs)
        finally:
            self.order -= 1

    def _same_functions(self, lhs: Params, rhs: Params) -> bool:
        """Return whether two rules are the same functions of the user's, with equal arguments."""
        keys = derivative_rules.rules_key(lhs), derivative_rules.rules_key(rhs)
        try:
            self._values.compare("rule", *keys)
        except Parted:
            return False
        return True

    def _jvp_rules(self, lhs: Params, rhs: Params) -> None:
        absences = derivative_rules.absences(lhs)
        patterns = None if absences is None else [(absent,) for absent in absences]
        for first, second in _traced("jvp", derivative_rules.jvp_rule, patterns, lhs, rhs):
            require_same("symbolic zeros of the jvp rule", first[1], second[1])
            self._compare_rules("jvp", first[0], second[0])

    def _vjp_rules(self, lhs: Params, rhs: Params) -> None:
        patterns = derivative_rules.perturbations(lhs)
        for first, second in _traced("vjp", derivative_rules.vjp_rules, patterns, lhs, rhs):
            self._compare_rules("fwd", first.forward, second.forward)
            require_same("residuals of the vjp rule", first.forwarded, second.forwarded)
            require_same("symbolic zeros of the vjp rule", first.zeros, second.zeros)
            self._compare_rules("bwd", first.backward, second.backward)


def _traced(
    name: str,
    rule: Callable[..., Traced],
    patterns: Sequence[tuple[tuple[bool, ...], ...]] | None,
    *sides: Params,
) -> Iterator[list[Traced]]:
    """Yield a rule of both functions as programs, for each pattern of symbolic zeros.

    Both may raise, whatever the errors.
    """
    if patterns is None:
        raise Parted(f"{name} rule", "one for many symbolic zeros", "another function")
    for pattern in patterns:
        traced: list[Traced] = []
        outcomes: list[str] = []
        for params in sides:
            try:
                traced.append(rule(params, *pattern))
                outcomes.append("a rule")
            except RuleFailed:
                outcomes.append("refused")
        require_same(f"{name} rule for zeros {pattern[-1]}", *outcomes)
        if traced:
            yield traced
