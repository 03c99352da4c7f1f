"""Quotients of exponentials: softmax, sigmoid, tanh."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.rules.jx417_unstable_form.look import Form, Look
from jaxsight.rules.program.walks import alike, maker_of, stripped
from jaxsight.rules.text.expressions import bracketed
from jaxsight.rules.wording import short
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
        first, second = maker_of(flow, above), maker_of(flow, below)
        if second is None:
            return None
        if first is not None and first.primitive == "exp" and second.primitive == "exp":
            return self._exponentials(first, second)
        terms = self._terms(second)
        if first is not None and first.primitive == "sub" and len(terms) == 2:
            return self._tanh(first, terms)
        return self._share(first, terms) if first is not None else None

    def _exponentials(self, first: Step, second: Step) -> Form | None:
        """Return the form of `exp(a) / exp(b)`."""
        if alike(self.flow, first.operands[0], second.operands[0]):
            return None
        exps = [first, second]
        if self._is_tame([first]) or self._is_tame([second]) or self._is_selected(exps):
            return None
        a, b = (self._argument(exp, ("exp",)) for exp in exps)
        pair = f"{a} - {bracketed(b)}" if a and b else "a - b"
        return self._nan("`exp(a) / exp(b)`", f"use `{short(f'jnp.exp({pair})')}`", exps)

    def _share(self, first: Step, terms: Sequence[int]) -> Form | None:
        """Return the form of a quotient of an exponential and a sum that it is a term of."""
        flow, above = self.flow, self.step.operands[0]
        exps = [exp for term in terms for exp in self._exps(term)]
        if len(terms) < 2 or len(exps) == 0:
            return None
        other_terms = [
            term for term in terms if not alike(flow, stripped(flow, term), stripped(flow, above))
        ]
        if len(other_terms) != len(terms) - 1 or not list(self._exps(above)):
            return None
        if any(
            self.known.literal(term) != 1 and not list(self._exps(term)) for term in other_terms
        ):
            return None
        ones = any(self.known.literal(term) == 1 for term in other_terms)
        if self._is_tame(exps, underflow=not ones) or self._is_selected(exps):
            return None
        if len(other_terms) > 1:
            return self._nan("softmax without max subtraction", "use `jax.nn.softmax`", exps)
        x = self._argument(first, ("exp",))
        if ones:
            help = f"use `jax.nn.sigmoid({x or 'x'})`"
            return self._nan("`exp(x) / (1 + exp(x))`", help, exps)
        other_exp = maker_of(flow, other_terms[0])
        y = self._argument(other_exp, ("exp",)) if other_exp is not None else ""
        pair = f"{x} - {bracketed(y)}" if x and y else "a - b"
        help = f"use `{short(f'jax.nn.sigmoid({pair})')}`"
        return self._nan("`exp(a) / (exp(a) + exp(b))`", help, exps)

    def _tanh(self, above: Step, terms: Sequence[int]) -> Form | None:
        flow = self.flow
        pairs = zip(above.operands, terms, strict=True)
        if not all(alike(flow, stripped(flow, a), stripped(flow, b)) for a, b in pairs):
            return None
        exps = [exp for term in terms for exp in self._exps(term)]
        if len(exps) != 2 or self._is_tame(exps) or self._is_selected(exps):
            return None
        x = self._argument(exps[0], ("exp",)) or "x"
        return self._nan("quotient of exponentials", f"use `jnp.tanh({x})`", exps)

    def _nan(self, form: str, help: str, exps: Sequence[Step]) -> Form:
        over = any(map(self._may_overflow, exps))
        return Form(
            f"{form} is NaN where an exponent exceeds {self.floats.greatest:.1f}"
            if over
            else f"{form} is NaN where all exponents are below {self.floats.least:.1f}",
            help,
            (self._overflow() if over else self._underflow("the denominator"),),
        )
