"""Quotients of exponentials: softmax, sigmoid, tanh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.rules.jx417_unstable_form.looking import Form, Look
from jaxsight.rules.program.bounds import (
    alike,
    made,
    stripped,
)
from jaxsight.rules.program.written import bracketed, short
from jaxsight.wire.program import Step


@dataclass(frozen=True, slots=True)
class Quotient(Look):
    """A quotient of the user's."""

    def quotient(self) -> Form | None:
        """Return the form of a quotient of exponentials."""
        flow, step = self.flow, self.step
        above, below = step.operands
        if not self.known.varies(above) or not self.known.varies(below):
            return None
        if exps := self._softmax(step):
            if self._is_tame(exps) or self._is_selected(exps):
                return None
            x = self._argument(exps[0], ("exp",)) or "x"
            axis = " and `where=` for the mask" if len(exps) > 1 else ""
            return self._nan(
                "softmax without max subtraction",
                f"use `jax.nn.softmax({x})`{axis}",
                exps,
            )
        first, second = made(flow, above), made(flow, below)
        if second is None:
            return None
        if first is not None and first.primitive == "exp" and second.primitive == "exp":
            if alike(flow, first.operands[0], second.operands[0]):
                return None
            exps = [first, second]
            if self._is_tame([first]) or self._is_tame([second]) or self._is_selected(exps):
                return None
            a, b = (self._argument(each, ("exp",)) for each in exps)
            pair = f"{a} - {bracketed(b)}" if a and b else "a - b"
            return self._nan("`exp(a) / exp(b)`", f"use `{short(f'jnp.exp({pair})')}`", exps)
        terms = self._terms(second)
        if first is not None and first.primitive == "sub" and len(terms) == 2:
            return self._tanh(first, terms)
        exps = [found for term in terms for found in self._exps(term)]
        if len(terms) < 2 or len(exps) == 0 or first is None:
            return None
        rest = [
            term for term in terms if not alike(flow, stripped(flow, term), stripped(flow, above))
        ]
        if len(rest) != len(terms) - 1 or not list(self._exps(above)):
            return None
        if any(self.known.literal(term) != 1 and not list(self._exps(term)) for term in rest):
            return None
        ones = any(self.known.literal(term) == 1 for term in rest)
        if self._is_tame(exps, underflow=not ones) or self._is_selected(exps):
            return None
        if len(rest) > 1:
            return self._nan("softmax without max subtraction", "use `jax.nn.softmax`", exps)
        x = self._argument(first, ("exp",))
        if ones:
            help = f"use `jax.nn.sigmoid({x or 'x'})`"
            return self._nan("`exp(x) / (1 + exp(x))`", help, exps)
        other = made(flow, rest[0])
        y = self._argument(other, ("exp",)) if other is not None else ""
        pair = f"{x} - {bracketed(y)}" if x and y else "a - b"
        help = f"use `{short(f'jax.nn.sigmoid({pair})')}`"
        return self._nan("`exp(a) / (exp(a) + exp(b))`", help, exps)

    def _tanh(self, above: Step, terms: Sequence[int]) -> Form | None:
        flow = self.flow
        pairs = zip(above.operands, terms, strict=True)
        if not all(alike(flow, stripped(flow, a), stripped(flow, b)) for a, b in pairs):
            return None
        exps = [found for term in terms for found in self._exps(term)]
        if len(exps) != 2 or self._is_tame(exps) or self._is_selected(exps):
            return None
        x = self._argument(exps[0], ("exp",)) or "x"
        return self._nan("quotient of exponentials", f"use `jnp.tanh({x})`", exps)

    def _nan(self, what: str, help: str, exps: Sequence[Step]) -> Form:
        over = any(map(self._may_overflow, exps))
        return Form(
            f"{what} is NaN where an exponent exceeds {self.floats.greatest:.1f}"
            if over
            else f"{what} is NaN where all exponents are below {self.floats.least:.1f}",
            help,
            (self._overflow() if over else self._underflow("the denominator"),),
        )
