"""Logarithms of exponentials and of their sums: log-sum-exp, softplus, log-cosh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.rules.jx417_unstable_form.look import Form, Look
from jaxsight.rules.program.walks import maker_of, stripped
from jaxsight.rules.text.expressions import bracketed, negated
from jaxsight.wire.primitives import MOVES, PICKS
from jaxsight.wire.program import Step


@dataclass(frozen=True, slots=True)
class LogarithmOfExponentials(Look):
    """A logarithm of the user's, of exponentials."""

    def _of_exponentials(self, operand: int) -> Form | None:
        """Return the form of a logarithm of sums of exponentials."""
        flow = self.flow
        inside = self._scaled(operand)
        step = maker_of(flow, inside)
        if step is None:
            return None
        match step.primitive:
            case "reduce_sum":
                exps = list(self._exps(step.operands[0]))
                return self._log_sum(exps, "logsumexp") if exps else None
            case "cumsum":
                exps = list(self._exps(step.operands[0]))
                return self._log_sum(exps, "cumlogsumexp") if exps else None
            case "dot_general":
                exps = [exp for operand in step.operands for exp in self._exps(operand)]
                return self._log_sum(exps, "product") if exps else None
            case "cosh":
                return self._log_cosh(step)
            case "sub":
                return self._log_difference(step)
            case "add":
                return self._log_of_terms(step)
            case _:
                return None

    def _log_of_terms(self, step: Step) -> Form | None:
        flow = self.flow
        terms = self._terms(step)
        terms = [term for term in terms if self.known.literal(term) != 0]
        numbers = [value for term in terms if (value := self.known.literal(term)) is not None]
        unknown_terms = [term for term in terms if self.known.literal(term) is None]
        exps = [list(self._exps(term)) for term in unknown_terms]
        if all(exps):
            flat = [exp_step for exp in exps for exp_step in exp]
            if not numbers and len(terms) > 1:
                return self._log_sum(flat, "logaddexp" if len(terms) == 2 else "logsumexp")
            if numbers == [1] and len(unknown_terms) == 1:
                return self._softplus(flat, "log(1 + exp(x))", step)
            if numbers == [1]:
                return self._log_sum(flat, "logsumexp", underflow=False, parts=(step.path,))
        if numbers == [1] and len(unknown_terms) == 1:
            total = maker_of(flow, unknown_terms[0])
            if total is not None and total.primitive == "reduce_sum":
                inner = list(self._exps(total.operands[0]))
                if inner:
                    return self._log_sum(inner, "with one", underflow=False, parts=(step.path,))
        return None

    def _log_sum(
        self,
        exps: Sequence[Step],
        twin: str,
        underflow: bool = True,
        parts: tuple[str, ...] = (),
    ) -> Form | None:
        if self._is_tame(exps, underflow) or self._is_selected(exps):
            return None
        argument = self._argument(exps[0], ("exp",)) if len(exps) == 1 else ""
        x = argument or "x"
        scaled = maker_of(self.flow, self.step.operands[0], PICKS)
        factor = scaled is not None and scaled.primitive in ("div", "mul")
        both = [self._argument(exp, ("exp",)) for exp in exps]
        pair = ", ".join(both) if len(both) == 2 and all(both) else "a, b"
        uses = {
            "logsumexp": f"use `jax.nn.logsumexp({x})`",
            "logaddexp": f"use `jnp.logaddexp({pair})`",
            "cumlogsumexp": f"use `jax.lax.cumlogsumexp({x})`",
            "product": f"use `jax.nn.logsumexp` over the contracted axis of `{x} + log(weights)`",
            "with one": f"use `jnp.logaddexp(0.0, jax.nn.logsumexp({x}))`",
        }
        over = any(map(self._may_overflow, exps))
        name = "cumulative log-sum-exp" if twin == "cumlogsumexp" else "log-sum-exp"
        return Form(
            f"{name} overflows where an exponent exceeds {self.floats.greatest:.1f}"
            if over
            else f"{name} is -inf where all exponents are below {self.floats.least:.1f}",
            uses[twin] + (", and add the logarithm of the factor" if factor else ""),
            (self._overflow() if over else self._underflow("the sum"),)
            + (("`logsumexp` takes weights as `b=`",) if self._has_weights(exps, twin) else ()),
            parts,
        )

    def _has_weights(self, exps: Sequence[Step], twin: str) -> bool:
        return twin == "logsumexp" and any(
            user.primitive == "mul"
            for exp in exps
            for _, user in self.flow.forwards(exp.results[0], MOVES)
            if not user.backward
            and any(
                self.known.literal(number) is None
                and stripped(self.flow, number) != self.flow.of(exp.results[0])
                for number in user.operands
            )
            and self._is_operator(user)
        )

    def _softplus(self, exps: Sequence[Step], form: str, step: Step | None = None) -> Form | None:
        if self._is_tame(exps, underflow=False) or self._is_selected(exps):
            return None
        argument = self._argument(exps[0], ("exp",)) or "x"
        return Form(
            f"`{form}` overflows for `x` above {self.floats.greatest:.1f}",
            f"use `jax.nn.softplus({argument})`",
            (self._overflow(),),
            (step.path,) if step is not None else (),
        )

    def _log_cosh(self, step: Step) -> Form | None:
        far = self.floats.greatest + math.log(2)
        low, high = self.known.bounds(step.operands[0])
        if max(-low, high) < far or self._is_selected([step]):
            return None
        x = self._argument(step, ("cosh",)) or "x"
        return Form(
            f"`log(cosh(x))` overflows for `x` above {far:.1f}",
            f"use `jnp.logaddexp({x}, {negated(x)}) - jnp.log(2.0)`",
            (f"in {self.floats.name}, `cosh(x)` is inf above {far:.1f} and below -{far:.1f}",),
        )

    def _log_difference(self, step: Step) -> Form | None:
        """Return the form of `log(exp(x) - 1)` and of `log(1 - exp(x))`."""
        first, second = (maker_of(self.flow, operand) for operand in step.operands)
        if first is not None and first.primitive == "exp":
            if self.known.literal(step.operands[1]) != 1:
                return None
            if self._is_tame([first], underflow=False) or self._is_selected([first]):
                return None
            x = self._argument(first, ("exp",)) or "x"
            return Form(
                f"`log(exp(x) - 1)` overflows for `x` above {self.floats.greatest:.1f}",
                f"use `{bracketed(x)} + jnp.log(-jnp.expm1({negated(x)}))`",
                (self._overflow(),),
                (step.path,),
            )
        if second is not None and second.primitive == "exp":
            if self.known.literal(step.operands[0]) != 1 or self._is_selected([second]):
                return None
            if not self._may_be_small(second.operands[0]):
                return None
            x = self._argument(second, ("exp",)) or "x"
            return Form(
                "`log(1 - exp(x))` loses digits for small `x`",
                f"use `jnp.log(-jnp.expm1({x}))`",
                (self._cancels(f"`1 - exp(x)` is 0 for `x` above -{self.floats.half:.0e}"),),
                (step.path,),
            )
        return None
