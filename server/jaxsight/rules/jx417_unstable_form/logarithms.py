"""Logarithms of probabilities, of products, of determinants, and near 1."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

from jaxsight.rules.jx417_unstable_form.exponentials import LogarithmOfExponentials
from jaxsight.rules.jx417_unstable_form.look import DENSITIES, Form
from jaxsight.rules.program.steps import elements, parameter
from jaxsight.rules.program.walks import alike, maker_of, stripped
from jaxsight.rules.text.expressions import arguments, name_of, negated, parsed
from jaxsight.rules.wording import short
from jaxsight.wire.primitives import PICKS
from jaxsight.wire.program import Step

_FEW = 4
"""Products of fewer factors are not reported."""


@dataclass(frozen=True, slots=True)
class Logarithm(LogarithmOfExponentials):
    """A logarithm of the user's."""

    def logarithm(self) -> Form | None:
        """Return the form of a logarithm."""
        flow, operand = self.flow, self.step.operands[0]
        if not self.known.varies(operand):
            return None
        step = maker_of(flow, operand, PICKS | {"abs"})
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
        step = maker_of(self.flow, self.step.operands[0])
        if step is None or not self.known.varies(self.step.operands[0]):
            return None
        if step.primitive == "exp":
            return self._softplus([step], "log1p(exp(x))")
        if step.primitive == "reduce_sum":
            exps = list(self._exps(step.operands[0]))
            return self._log_sum(exps, "with one", underflow=False) if exps else None
        if step.primitive == "neg":
            inner = maker_of(self.flow, step.operands[0])
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
                picked = maker_of(flow, self.step.operands[0]) is not step
                return Form(
                    "logarithm of a softmax is -inf where a probability underflows to 0",
                    f"use `jax.nn.log_softmax({argument})`"
                    + (", and take its elements" if picked else ""),
                    (self._underflow("a probability", "a logit is far below the maximum"),),
                    (step.path,),
                )
            below = maker_of(flow, step.operands[1])
            if below is not None and below.primitive == "reduce_sum":
                return self._log_of_share(step, below)
            terms = self._terms(below) if below is not None else []
            if self.known.literal(step.operands[0]) == 1 and len(terms) == 2:
                exps = [exp for term in terms for exp in self._exps(term)]
                ones = [term for term in terms if self.known.literal(term) == 1]
                if ones and exps and not self._is_tame(exps, underflow=False):
                    return Form(
                        "logarithm of a sigmoid is -inf where the sigmoid underflows to 0",
                        "use `jax.nn.log_sigmoid(x)`",
                        (self._overflow(),),
                        (step.path,),
                    )
        if step.primitive == "sub" and self.known.literal(step.operands[0]) == 1:
            subtracted = maker_of(flow, step.operands[1])
            if subtracted is not None and subtracted.primitive == "logistic":
                return self._log_sigmoid(subtracted, "log(1 - sigmoid(x))", True, step)
            if subtracted is not None and self._is_square_of_tanh(subtracted):
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
        over = any(self._may_overflow(node) for node in above + below)
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
        inner = maker_of(flow, step.operands[0])
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
        call = parsed(self.view.quote(inner.path))
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute | ast.Name):
            return None
        name = name_of(call)
        if name not in DENSITIES or (complement and name != "cdf"):
            return None
        function = ast.unparse(call.func)
        stable = "logsf" if complement else DENSITIES[name]
        stable_function = function.removesuffix(name) + stable
        return Form(
            f"logarithm of `{'1 - ' if complement else ''}{name}` is -inf where that "
            "underflows to 0",
            f"use `{short(f'{stable_function}({arguments(call)})')}`",
            parts=(step.path,),
        )

    def _of_one_hot(self, step: Step) -> Form | None:
        """Return the form of `log(sum(softmax(x) * one_hot))`."""
        product = maker_of(self.flow, step.operands[0]) if step.primitive == "reduce_sum" else None
        if product is None or product.primitive != "mul":
            return None
        for first, second in (product.operands, product.operands[::-1]):
            softmax = maker_of(self.flow, first)
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
        call = parsed(self.view.quote(step.path))
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
        if not self._is_operator(step) or maker_of(self.flow, self.step.operands[0]) is not step:
            return None
        literals = [self.known.literal(operand) for operand in step.operands]
        match step.primitive, literals:
            case "add", ([1, _] | [_, 1]):
                x, sign = step.operands[1 if literals[0] == 1 else 0], ""
            case "sub", [1, _]:
                x, sign = step.operands[1], "-"
                if self._is_clipped(x) or self._is_softmax(x):
                    return None
            case _:
                return None
        inner = maker_of(self.flow, x)
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
        call = parsed(self.view.quote(self.step.path))
        written = name_of(call) if isinstance(call, ast.Call) else name
        divided = {"log2": " / jnp.log(2.0)", "log10": " / jnp.log(10.0)"}.get(written, "")
        return Form(
            f"`{written}(1 {operator} x)` loses digits for small `|x|`, and is 0 below {half:.0e}",
            f"use `{short(log1p)}{divided}`",
            (self._cancels(f"`1 {operator} x` is 1 for `x` below {half:.0e}"),),
        )
