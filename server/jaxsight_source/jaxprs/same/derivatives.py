"""Comparison of the rules of custom derivatives, as the programs that JAX traces from them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

from jaxsight_source.compat import derivative_rules, rule_identity
from jaxsight_source.compat.derivative_rules import Refused
from jaxsight_source.compat.jaxpr_types import Aval, Params
from jaxsight_source.compat.staging import Program, opened
from jaxsight_source.jaxprs.same.difference import Parted, require, require_same
from jaxsight_source.jaxprs.same.values import ValueComparison
from jaxsight_source.options import DEEPEST_RULES

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
        if rule_identity.same_rule(lhs, rhs) or self._same_functions(lhs, rhs):
            return
        inputs = opened(lhs["call_jaxpr"]).jaxpr.invars[lhs["num_consts"] :]
        types = tuple(var.aval for var in inputs)
        pair = (rule_identity.rule_identity(lhs), rule_identity.rule_identity(rhs), types)
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
        keys = rule_identity.rules_key(lhs), rule_identity.rules_key(rhs)
        try:
            self._values.compare("rule", *keys)
        except Parted:
            return False
        return True

    def _jvp_rules(self, lhs: Params, rhs: Params) -> None:
        patterns = derivative_rules.absences(lhs)
        if patterns is None:
            raise Parted("jvp rule", "one for many symbolic zeros", "another function")
        for absent in patterns:
            first, second = (
                _traced(derivative_rules.jvp_rule, params, absent) for params in (lhs, rhs)
            )
            if isinstance(first, str) or isinstance(second, str):
                part = f"jvp rule for zeros {absent}"
                require(first == second, part, _outcome(first), _outcome(second))
                continue
            require_same("symbolic zeros of the jvp rule", first.zeros, second.zeros)
            self._compare_rules("jvp", first.program, second.program)

    def _vjp_rules(self, lhs: Params, rhs: Params) -> None:
        patterns = derivative_rules.perturbations(lhs)
        if patterns is None:
            raise Parted("vjp rule", "one for many symbolic zeros", "another function")
        for perturbed, absent in patterns:
            first, second = (
                _traced(derivative_rules.vjp_rules, params, perturbed, absent)
                for params in (lhs, rhs)
            )
            if isinstance(first, str) or isinstance(second, str):
                require(first == second, "vjp rule", _outcome(first), _outcome(second))
                continue
            self._compare_rules("fwd", first.forward, second.forward)
            require_same("residuals of the vjp rule", first.forwarded, second.forwarded)
            require_same("symbolic zeros of the vjp rule", first.zeros, second.zeros)
            self._compare_rules("bwd", first.backward, second.backward)


def _traced(rule: Callable[..., Traced], *arguments: object) -> Traced | str:
    """Return a rule as a program, or `"refused"` if it raises, whatever the error."""
    try:
        return rule(*arguments)
    except Refused:
        return "refused"


def _outcome(rule: object) -> str:
    return rule if isinstance(rule, str) else "a rule"
