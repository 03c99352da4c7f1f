"""Differences that cancel: `exp(x) - 1`, `1 - erf(x)`, `1 - cos(x)`, a variance."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass

from jaxsight.rules.jx417_unstable_form.look import Form, Look
from jaxsight.rules.program.steps import parameter
from jaxsight.rules.program.walks import alike, maker_of, stripped
from jaxsight.rules.text.expressions import arguments, bracketed, parsed
from jaxsight.rules.wording import short
from jaxsight.wire.primitives import MOVES
from jaxsight.wire.program import Step


@dataclass(frozen=True, slots=True)
class Difference(Look):
    """A difference of the user's, or a sum with a negative number."""

    def difference(self) -> Form | None:
        """Return the form of a difference: `exp(x) - 1`, `1 - erf(x)`, `1 - cos(x)`, a variance."""
        flow, step = self.flow, self.step
        literals = [self.known.literal(operand) for operand in step.operands]
        if step.primitive == "add":
            if -1 not in literals:
                return None
            return self._expm1(maker_of(flow, step.operands[1 - literals.index(-1)]), "")
        if literals[1] == 1:
            return self._expm1(maker_of(flow, step.operands[0]), "")
        subtracted = maker_of(flow, step.operands[1])
        if literals[0] == 1 and subtracted is not None:
            match subtracted.primitive:
                case "exp":
                    return self._expm1(subtracted, "-")
                case "erf":
                    return self._erfc(subtracted)
                case "cos":
                    return self._one_minus_cos(subtracted)
            return self._one_minus_cdf(subtracted)
        return self._variance()

    def _expm1(self, exp: Step | None, sign: str) -> Form | None:
        if exp is None or exp.primitive != "exp" or not self.known.varies(exp.operands[0]):
            return None
        if not self._may_be_small(exp.operands[0]) or self._is_selected([exp], exact=True):
            return None
        if self._is_only_compared():
            return None
        x = self._argument(exp, ("exp",)) or "x"
        half = self.floats.half
        form = "1 - exp(x)" if sign else "exp(x) - 1"
        return Form(
            f"`{form}` loses digits for small `|x|`, and is 0 below {half:.0e}",
            f"use `{short(f'{sign}jnp.expm1({x})')}`",
            (self._cancels(f"`exp(x)` is 1 for `x` below {half:.0e}"),),
        )

    def _erfc(self, erf: Step) -> Form | None:
        if not self.known.varies(erf.operands[0]) or self.known.bounds(erf.operands[0])[1] < 1:
            return None
        call = parsed(self.view.quote(erf.path))
        x = self._argument(erf, ("erf",)) or "x"
        written = ast.unparse(call.func) if isinstance(call, ast.Call) else "jax.scipy.special.erf"
        stable = written + "c" if written.endswith("erf") else "jax.scipy.special.erfc"
        return Form(
            "`1 - erf(x)` loses digits as `x` grows, and is 0 where `erf(x)` is 1",
            f"use `{short(f'{stable}({x})')}`",
            (f"in {self.floats.name}, numbers below {self.floats.half:.0e} are lost beside 1",),
        )

    def _one_minus_cos(self, cos: Step) -> Form | None:
        angle = cos.operands[0]
        if not self.known.varies(angle) or not self._may_be_small(angle):
            return None
        if self._is_selected([cos], exact=True) or self._is_only_compared():
            return None
        x = self._argument(cos, ("cos",)) or "x"
        least = math.sqrt(2 * self.floats.half)
        return Form(
            f"`1 - cos(x)` loses digits for small `|x|`, and is 0 below {least:.0e}",
            f"use `{short(f'2 * jnp.sin({bracketed(x)} / 2) ** 2')}`",
            (self._cancels(f"`cos(x)` is 1 for `x` below {least:.0e}"),),
            severity="information",
        )

    def _one_minus_cdf(self, step: Step) -> Form | None:
        call = parsed(self.view.quote(step.path))
        if not isinstance(call, ast.Call) or step.span == self.step.span:
            return None
        function = ast.unparse(call.func)
        if not function.endswith("norm.cdf"):
            return None
        stable = f"{function.removesuffix('cdf')}sf({arguments(call)})"
        return Form(
            "`1 - cdf(x)` loses digits in the upper tail",
            f"use `{short(stable)}`",
            (f"in {self.floats.name}, numbers below {self.floats.half:.0e} are lost beside 1",),
        )

    def _variance(self) -> Form | None:
        """Return the form of `E[x²] - E[x]²` and of `E[xy] - E[x] E[y]`."""
        flow = self.flow
        of_squares = self._mean(self.step.operands[0])
        squared = maker_of(flow, self.step.operands[1])
        factors = self._factors(squared) if squared is not None else None
        if of_squares is None or factors is None:
            return None
        means = [self._mean(factor) for factor in factors]
        terms = maker_of(flow, of_squares)
        pair = self._factors(terms) if terms is not None else None
        if pair is None or None in means:
            return None
        mean_arrays = [stripped(flow, mean) for mean in means if mean is not None]
        operands = [stripped(flow, operand) for operand in pair]
        ways = (operands, operands[::-1])
        if not any(all(map(alike, [flow] * 2, mean_arrays, way)) for way in ways):
            return None
        if not self.known.varies(of_squares) or self._is_guarded():
            return None
        variance = alike(flow, *operands)
        spread = "the spread" if variance else "the spreads"
        mean = "the mean is" if variance else "the means are"
        form = "E[x²] - E[x]²" if variance else "E[xy] - E[x]E[y]"
        return Form(
            f"`{form}` cancels where {mean} large compared with {spread}",
            "use `jnp.var(x)`" if variance else "use `jnp.mean((x - x_mean) * (y - y_mean))`",
            (
                (f"in {self.floats.name}, it may even be negative, and its square root NaN",)
                if variance
                else ()
            ),
        )

    def _mean(self, number: int) -> int | None:
        """Return what a value is the mean of."""
        step = maker_of(self.flow, number)
        if step is None or step.primitive not in ("div", "mul"):
            return None
        for total, count in (step.operands, step.operands[::-1]):
            divisor = self.known.literal(count)
            summed = maker_of(self.flow, total)
            if divisor and summed is not None and summed.primitive == "reduce_sum":
                return summed.operands[0]
            if step.primitive == "div":
                break
        return None

    def _factors(self, step: Step) -> tuple[int, int] | None:
        match step.primitive:
            case "square":
                return step.operands[0], step.operands[0]
            case "integer_pow" if parameter(step, "y") == 2:
                return step.operands[0], step.operands[0]
            case "mul":
                first, second = step.operands
                return first, second
            case _:
                return None

    def _is_guarded(self) -> bool:
        """Whether the result is kept from being negative, as by those who cancel on purpose."""
        return any(
            user.primitive in ("max", "clamp", "abs")
            for _, user in self.flow.forwards(self.step.results[0], MOVES)
        )
