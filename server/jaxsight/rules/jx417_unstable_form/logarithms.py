"""Logarithms of sums of exponentials, of probabilities, of products, and near 1."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.rules.jx417_unstable_form.looking import DENSITIES, Form, Look
from jaxsight.rules.program.bounds import (
    MOVES,
    PICKS,
    alike,
    made,
    readers,
    stripped,
)
from jaxsight.rules.program.view import elements, parameter
from jaxsight.rules.program.written import arguments, bracketed, name_of, negated, parsed, short
from jaxsight.wire.program import Step

_FEW = 4
"""Products of fewer factors are not reported."""


@dataclass(frozen=True, slots=True)
class Logarithm(Look):
    """A logarithm of the user's."""

    def logarithm(self) -> Form | None:
        """Return the form of a logarithm."""
        flow, operand = self.flow, self.step.operands[0]
        if not self.known.varies(operand):
            return None
        step = made(flow, operand, PICKS | {"abs"})
        if step is None:
            return None
        return (
            self._of_probabilities(step)
            or self._of_density(step)
            or self._of_exponentials(operand)
            or self._of_one_hot(step)
            or self._of_product(step)
            or self._of_determinant(step)
            or self._near_one(step)
        )

    def log1p(self) -> Form | None:
        """Return the form of `log1p(exp(x))` or of `log1p(-sigmoid(x))`."""
        step = made(self.flow, self.step.operands[0])
        if step is None or not self.known.varies(self.step.operands[0]):
            return None
        if step.primitive == "exp":
            return self._softplus([step], "log1p(exp(x))")
        if step.primitive == "reduce_sum":
            exps = list(self._exps(step.operands[0]))
            return self._log_sum(exps, "with one", underflow=False) if exps else None
        if step.primitive == "neg":
            inner = made(self.flow, step.operands[0])
            if inner is not None and inner.primitive == "logistic":
                return self._log_sigmoid(inner, "log1p(-sigmoid(x))", complement=True)
        return None

    def _of_probabilities(self, step: Step) -> Form | None:
        flow = self.flow
        if step.primitive == "logistic":
            return self._log_sigmoid(step, "log(sigmoid(x))", complement=False)
        if step.primitive == "div":
            softmax = self._softmax(step)
            if softmax:
                argument = self._argument(step, ("softmax",)) or "logits"
                picked = made(flow, self.step.operands[0]) is not step
                return Form(
                    "logarithm of a softmax is -inf where a probability underflows to 0",
                    f"use `jax.nn.log_softmax({argument})`"
                    + (", and take its elements" if picked else ""),
                    (self._underflow("a probability", "a logit is far below the maximum"),),
                    (step.path,),
                )
            below = made(flow, step.operands[1])
            if below is not None and below.primitive == "reduce_sum":
                return self._log_of_share(step, below)
            terms = self._terms(below) if below is not None else []
            if self.known.literal(step.operands[0]) == 1 and len(terms) == 2:
                exps = [found for term in terms for found in self._exps(term)]
                ones = [term for term in terms if self.known.literal(term) == 1]
                if ones and exps and not self._is_tame(exps, underflow=False):
                    return Form(
                        "logarithm of a sigmoid is -inf where the sigmoid underflows to 0",
                        "use `jax.nn.log_sigmoid(x)`",
                        (self._overflow(),),
                        (step.path,),
                    )
        if step.primitive == "sub" and self.known.literal(step.operands[0]) == 1:
            taken = made(flow, step.operands[1])
            if taken is not None and taken.primitive == "logistic":
                return self._log_sigmoid(taken, "log(1 - sigmoid(x))", True, step)
            if taken is not None and self._is_square_of_tanh(taken):
                far = self.floats.saturated / 2 + math.log(2)
                return Form(
                    f"`log(1 - tanh(x)**2)` is -inf for `x` above {far:.2g}",
                    "use `2 * (jnp.log(2.0) - x - jax.nn.softplus(-2 * x))`",
                    (f"in {self.floats.name}, `tanh(x)` is 1 above {far:.2g}",),
                    (step.path,),
                )
        return None

    def _log_of_share(self, step: Step, total: Step) -> Form | None:
        """Return the form of the logarithm of exponentials divided by a sum of exponentials."""
        above = list(self._exps(stripped(self.flow, step.operands[0], PICKS | {"reduce_sum"})))
        below = list(self._exps(total.operands[0]))
        if not above or not below or self._is_tame(above + below):
            return None
        if self._is_selected(above + below):
            return None
        over = any(self._may_overflow(each) for each in above + below)
        return Form(
            "logarithm of a share of exponentials "
            + (
                f"is NaN where an exponent exceeds {self.floats.greatest:.1f}"
                if over
                else f"is not finite where an exponent is below {self.floats.least:.1f}"
            ),
            "subtract logarithms: `a - jax.nn.logsumexp(b)` for `log(exp(a) / sum(exp(b)))`",
            (self._overflow() if over else self._underflow("the share"),),
            (step.path,),
        )

    def _log_sigmoid(
        self, step: Step, form: str, complement: bool, difference: Step | None = None
    ) -> Form | None:
        floats = self.floats
        argument = self._argument(step, ("sigmoid", "logistic", "expit")) or "x"
        low, high = self.known.bounds(step.operands[0])
        far = floats.saturated if complement else -floats.greatest
        if (high < far - 1) if complement else (low > far):
            return None
        where = f"above {far:.1f}" if complement else f"below {far:.1f}"
        end = "1" if complement else "0"
        minus = negated(argument) if complement else argument
        return Form(
            f"`{form}` is -inf for `x` {where}",
            f"use `jax.nn.log_sigmoid({minus})`",
            (f"in {floats.name}, `sigmoid(x)` is {end} there",),
            (difference.path,) if difference is not None else (),
        )

    def _is_square_of_tanh(self, step: Step) -> bool:
        flow = self.flow
        if step.primitive == "mul" and not alike(flow, *step.operands):
            return False
        if step.primitive not in ("square", "integer_pow", "mul"):
            return False
        if step.primitive == "integer_pow" and parameter(step, "y") != 2:
            return False
        inner = made(flow, step.operands[0])
        return inner is not None and inner.primitive == "tanh"

    def _of_density(self, step: Step) -> Form | None:
        flow = self.flow
        complement = (
            step.primitive == "sub"
            and self.known.literal(step.operands[0]) == 1
            and self._is_operator(step)
        )
        inner = flow.made_by(step.operands[1]) if complement else step
        if inner is None or inner.span == self.step.span:
            return None
        call = parsed(self.reading.quote(inner.path))
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute | ast.Name):
            return None
        name = name_of(call)
        if name not in DENSITIES or (complement and name != "cdf"):
            return None
        function = ast.unparse(call.func)
        stable = "logsf" if complement else DENSITIES[name]
        whole = function.removesuffix(name) + stable
        return Form(
            f"logarithm of `{'1 - ' if complement else ''}{name}` is -inf where that "
            "underflows to 0",
            f"use `{short(f'{whole}({arguments(call)})')}`",
            parts=(step.path,),
        )

    def _of_exponentials(self, operand: int) -> Form | None:
        """Return the form of a logarithm of sums of exponentials."""
        flow = self.flow
        inside = self._scaled(operand)
        step = made(flow, inside)
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
                exps = [found for each in step.operands for found in self._exps(each)]
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
        numbers = [said for term in terms if (said := self.known.literal(term)) is not None]
        others = [term for term in terms if self.known.literal(term) is None]
        exps = [list(self._exps(term)) for term in others]
        if all(exps):
            flat = [found for some in exps for found in some]
            if not numbers and len(terms) > 1:
                return self._log_sum(flat, "logaddexp" if len(terms) == 2 else "logsumexp")
            if numbers == [1] and len(others) == 1:
                return self._softplus(flat, "log(1 + exp(x))", step)
            if numbers == [1]:
                return self._log_sum(flat, "logsumexp", underflow=False, parts=(step.path,))
        if numbers == [1] and len(others) == 1:
            total = made(flow, others[0])
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
        scaled = made(self.flow, self.step.operands[0], PICKS)
        factor = scaled is not None and scaled.primitive in ("div", "mul")
        both = [self._argument(each, ("exp",)) for each in exps]
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
            for each in exps
            for _, user in readers(self.flow, each.results[0], lambda s: s.primitive in MOVES)
            if not user.backward
            and any(
                self.known.literal(number) is None
                and stripped(self.flow, number) != self.flow.of(each.results[0])
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
        first, second = (made(self.flow, each) for each in step.operands)
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

    def _of_one_hot(self, step: Step) -> Form | None:
        """Return the form of `log(sum(softmax(x) * one_hot))`."""
        product = made(self.flow, step.operands[0]) if step.primitive == "reduce_sum" else None
        if product is None or product.primitive != "mul":
            return None
        for first, second in (product.operands, product.operands[::-1]):
            softmax = made(self.flow, first)
            if softmax is None or not self._softmax(softmax) or not self._is_of_booleans(second):
                continue
            x = self._argument(softmax, ("softmax",)) or "logits"
            return Form(
                "logarithm of a softmax is -inf where a probability underflows to 0",
                f"use `{short(f'jnp.sum(one_hot * jax.nn.log_softmax({x}), axis=-1)')}`",
                (self._underflow("a probability", "a logit is far below the maximum"),),
            )
        return None

    def _is_of_booleans(self, number: int) -> bool:
        source = stripped(self.flow, number)
        return self.flow.values[source].dtype == "bool"

    def _of_product(self, step: Step) -> Form | None:
        if step.primitive == "reduce_prod":
            count = elements(self.flow.value(step.operands[0])) // max(
                1, elements(self.flow.value(step.results[0]))
            )
            stable = "sum"
        elif step.primitive == "cumprod":
            axis = parameter(step, "axis")
            shape = self.flow.value(step.operands[0]).shape
            count = shape[axis] if isinstance(axis, int) and axis < len(shape) else 0
            stable = "cumsum"
        else:
            return None
        if count < _FEW or self.known.is_whole(step.operands[0]):
            return None
        x = self._argument(step, ("prod", "cumprod")) or "x"
        return Form(
            f"product of {count:,} factors overflows or underflows before its logarithm",
            f"use `{short(f'jnp.{stable}(jnp.log({x}))')}`",
            (self._range(count),),
        )

    def _range(self, count: int) -> str:
        least = math.exp(self.floats.least)
        return f"{count:,} factors of 0.1 are 1e-{count}; {self.floats.name} is 0 below {least:.0e}"

    def _of_determinant(self, step: Step) -> Form | None:
        call = parsed(self.reading.quote(step.path))
        if not isinstance(call, ast.Call) or name_of(call) != "det":
            return None
        if step.span == self.step.span:
            return None
        return Form(
            "determinant overflows or underflows before its logarithm",
            f"use `{short(f'jnp.linalg.slogdet({arguments(call)})[1]')}`",
            ("a determinant grows or shrinks exponentially with the size of the matrix",),
        )

    def _near_one(self, step: Step) -> Form | None:
        """Return the form of `log(1 + x)` and of `log(1 - x)`."""
        if not self._is_operator(step) or made(self.flow, self.step.operands[0]) is not step:
            return None
        literals = [self.known.literal(each) for each in step.operands]
        match step.primitive, literals:
            case "add", ([1, _] | [_, 1]):
                x, sign = step.operands[1 if literals[0] == 1 else 0], ""
            case "sub", [1, _]:
                x, sign = step.operands[1], "-"
                if self._is_clipped(x) or self._is_softmax(x):
                    return None
            case _:
                return None
        inner = made(self.flow, x)
        if inner is not None and inner.primitive == "exp":
            high = self.known.bounds(inner.operands[0])[1]
            if high > 0:  # `log(1 + exp(x))`, which is guarded
                return None
        if not self._may_be_small(x) or self._is_selected([step], exact=True):
            return None
        text = self._side(step, x) or "x"
        operator = "-" if sign else "+"
        log1p = f"jnp.log1p({negated(text) if sign else text})"
        half = self.floats.half
        name = "log" if self.step.primitive == "log" else self.step.primitive
        call = parsed(self.reading.quote(self.step.path))
        written = name_of(call) if isinstance(call, ast.Call) else name
        divided = {"log2": " / jnp.log(2.0)", "log10": " / jnp.log(10.0)"}.get(written, "")
        return Form(
            f"`{written}(1 {operator} x)` loses digits for small `|x|`, and is 0 below {half:.0e}",
            f"use `{short(log1p)}{divided}`",
            (self._cancels(f"`1 {operator} x` is 1 for `x` below {half:.0e}"),),
        )
