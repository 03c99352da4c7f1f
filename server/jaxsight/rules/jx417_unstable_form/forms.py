"""Which expressions are unstable, where they are, and what to write in their place."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.bounds import (
    MOVES,
    PICKS,
    Known,
    alike,
    made,
    readers,
    stripped,
)
from jaxsight.rules.reading import ELEMENTWISE, Flow, Reading, captured, elements, parameter
from jaxsight.rules.written import arguments, bracketed, name_of, negated, parsed, short
from jaxsight.tracer.program import Step


@dataclass(frozen=True, slots=True)
class Form:
    """An unstable expression, in the words of a finding."""

    message: str
    help: str
    notes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """Paths of the equations that it is made of, which are not to be reported by themselves."""
    severity: str = ""


@dataclass(frozen=True, slots=True)
class _Float:
    """The limits of a floating-point type."""

    name: str
    greatest: float
    """Above this number `exp` overflows."""
    least: float
    """Below this number `exp` is 0."""
    half: float
    """Half the distance from 1 to the next greater number: what is less is lost beside 1."""

    @property
    def saturated(self) -> float:
        """Above this number a sigmoid is 1."""
        return -math.log(self.half)


_FLOATS = {
    "float16": _Float("float16", 11.09, -17.32, 2.0**-11),
    "bfloat16": _Float("bfloat16", 88.72, -92.88, 2.0**-8),
    "float32": _Float("float32", 88.72, -103.97, 2.0**-24),
    "float64": _Float("float64", 709.78, -745.13, 2.0**-53),
}
"""https://en.wikipedia.org/wiki/IEEE_754#Basic_and_interchange_formats and bfloat16, whose range is
that of `float32`.
"""

_COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
_EXTREMES = frozenset(
    {"reduce_max", "reduce_min", "max", "min", "cummax", "cummin", "argmax", "argmin", "sort",
     "top_k", "approx_top_k", "pmax", "reduce_window_max", "cumlogsumexp"}
)  # fmt: skip
"""What is subtracted before `exp` where a maximum is."""
_JOINED_BY = frozenset({"and", "or", "not"})
_NEAR = 1e-5
"""A function is called inaccurate near 0 where its argument may be as small as this."""
_FEW = 4
"""Products of fewer factors are not reported."""
_DENSITIES = {
    "cdf": "logcdf", "sf": "logsf", "pdf": "logpdf", "pmf": "logpmf", "ndtr": "log_ndtr",
    "prob": "log_prob", "survival_function": "log_survival_function",
}  # fmt: skip
"""By the name of a function that of its logarithm."""


def of(reading: Reading, step: Step) -> Form | None:
    """Return the unstable form that an equation completes, if any."""
    dtype = reading.flow.value(step.results[0]).dtype
    floats = _FLOATS.get(dtype)
    if floats is None:
        return None
    look = _Look(reading, Known(reading.flow), step, floats)
    match step.primitive:
        case "log" | "log2":
            return look.logarithm()
        case "log1p":
            return look.log1p()
        case "sub" | "add":
            return look.difference()
        case _:
            return look.quotient()


@dataclass(frozen=True, slots=True)
class _Look:
    """One equation of the user's that is looked at."""

    reading: Reading
    known: Known
    step: Step
    floats: _Float

    @property
    def flow(self) -> Flow:
        return self.reading.flow

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
                    (f"in {self.floats.name}, `tanh(x)` rounds to 1 above {far:.2g}",),
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

    def _may_overflow(self, exp: Step) -> bool:
        return self.known.bounds(exp.operands[0])[1] > self.floats.greatest

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
        rounds = "1" if complement else "0"
        minus = negated(argument) if complement else argument
        return Form(
            f"`{form}` is -inf for `x` {where}",
            f"use `jax.nn.log_sigmoid({minus})`",
            (f"in {floats.name}, `sigmoid(x)` rounds to {rounds} there",),
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
        if name not in _DENSITIES or (complement and name != "cdf"):
            return None
        function = ast.unparse(call.func)
        stable = "logsf" if complement else _DENSITIES[name]
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
            (self._cancels(f"`1 {operator} x` rounds to 1 for `x` below {half:.0e}"),),
        )

    def difference(self) -> Form | None:
        """Return the form of a difference: `exp(x) - 1`, `1 - erf(x)`, `1 - cos(x)`, a variance."""
        flow, step = self.flow, self.step
        literals = [self.known.literal(each) for each in step.operands]
        if step.primitive == "add":
            if -1 not in literals:
                return None
            return self._expm1(made(flow, step.operands[1 - literals.index(-1)]), "")
        if literals[1] == 1:
            return self._expm1(made(flow, step.operands[0]), "")
        taken = made(flow, step.operands[1])
        if literals[0] == 1 and taken is not None:
            match taken.primitive:
                case "exp":
                    return self._expm1(taken, "-")
                case "erf":
                    return self._erfc(taken)
                case "cos":
                    return self._one_minus_cos(taken)
            return self._one_minus_cdf(taken)
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
            (self._cancels(f"`exp(x)` rounds to 1 for `x` below {half:.0e}"),),
        )

    def _erfc(self, erf: Step) -> Form | None:
        if not self.known.varies(erf.operands[0]) or self.known.bounds(erf.operands[0])[1] < 1:
            return None
        call = parsed(self.reading.quote(erf.path))
        x = self._argument(erf, ("erf",)) or "x"
        written = ast.unparse(call.func) if isinstance(call, ast.Call) else "jax.scipy.special.erf"
        stable = written + "c" if written.endswith("erf") else "jax.scipy.special.erfc"
        return Form(
            "`1 - erf(x)` loses digits as `x` grows, and is 0 where `erf(x)` rounds to 1",
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
            (self._cancels(f"`cos(x)` rounds to 1 for `x` below {least:.0e}"),),
            severity="information",
        )

    def _one_minus_cdf(self, step: Step) -> Form | None:
        call = parsed(self.reading.quote(step.path))
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
        squared = made(flow, self.step.operands[1])
        factors = self._factors(squared) if squared is not None else None
        if of_squares is None or factors is None:
            return None
        means = [self._mean(each) for each in factors]
        terms = made(flow, of_squares)
        pair = self._factors(terms) if terms is not None else None
        if pair is None or None in means:
            return None
        found = [stripped(flow, each) for each in means if each is not None]
        given = [stripped(flow, each) for each in pair]
        ways = (given, given[::-1])
        if not any(all(map(alike, [flow] * 2, found, way)) for way in ways):
            return None
        if not self.known.varies(of_squares) or self._is_guarded():
            return None
        variance = alike(flow, *given)
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
        step = made(self.flow, number)
        if step is None or step.primitive not in ("div", "mul"):
            return None
        for total, count in (step.operands, step.operands[::-1]):
            said = self.known.literal(count)
            summed = made(self.flow, total)
            if said and summed is not None and summed.primitive == "reduce_sum":
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
            for _, user in readers(
                self.flow, self.step.results[0], lambda step: step.primitive in MOVES
            )
        )

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

    def _softmax(self, step: Step) -> list[Step]:
        """Return the exponentials of a quotient that is a softmax: numbers by their own sum."""
        flow = self.flow
        if step.primitive != "div":
            return []
        above = stripped(flow, step.operands[0])
        total = made(flow, step.operands[1])
        if total is None or total.primitive != "reduce_sum":
            return []
        summed = stripped(flow, total.operands[0])
        if not alike(flow, above, summed):
            return []
        return list(self._exps(above))

    def _is_softmax(self, number: int) -> bool:
        step = made(self.flow, number, PICKS)
        return step is not None and bool(self._softmax(step))

    def _scaled(self, number: int) -> int:
        """Return what a value is a multiple of by literals: means are sums."""
        step = made(self.flow, number, PICKS)
        if step is not None and step.primitive in ("div", "mul"):
            for index, other in ((0, 1), (1, 0))[: 1 if step.primitive == "div" else 2]:
                if self.known.literal(step.operands[other]) is not None:
                    return self._scaled(step.operands[index])
        return stripped(self.flow, number, PICKS)

    def _terms(self, step: Step) -> list[int]:
        """Return what a sum that is written with `+` is of."""
        if step.primitive != "add":
            return []
        found: list[int] = []
        for number in step.operands:
            inner = made(self.flow, number)
            found += (inner is not None and self._terms(inner)) or [number]
        return found

    def _exps(self, number: int, depth: int = 4) -> Iterator[Step]:
        """Yield the exponentials in a product with weights, or in a selection with zeros."""
        flow = self.flow
        step = made(flow, number)
        if step is None or not depth:
            return
        match step.primitive:
            case "exp" if self.known.varies(step.operands[0]):
                yield step
            case "mul":
                for each in step.operands:
                    yield from self._exps(each, depth - 1)
            case "div":
                yield from self._exps(step.operands[0], depth - 1)
            case "select_n":
                cases = step.operands[1:]
                if any(self.known.literal(each) == 0 for each in cases):
                    for each in cases:
                        yield from self._exps(each, depth - 1)
            case "concatenate":
                for each in step.operands:
                    yield from self._exps(each, depth - 1)

    def _is_tame(self, exps: Sequence[Step], underflow: bool = True) -> bool:
        """Whether exponentials neither overflow, nor all underflow, or a maximum is subtracted."""
        if any(self._is_shifted(each.operands[0]) for each in exps):
            return True
        if not any(self.known.varies(each.operands[0]) for each in exps):
            return True
        limits = [self.known.bounds(each.operands[0]) for each in exps]
        over = any(high > self.floats.greatest for _, high in limits)
        under = all(low < self.floats.least for low, _ in limits)
        return not over and not (underflow and under)

    def _is_shifted(self, number: int, depth: int = 6) -> bool:
        """Whether something like a maximum is subtracted from an exponent."""
        flow = self.flow
        step = made(flow, number, PICKS)
        if step is None or not depth:
            return False
        match step.primitive:
            case "sub":
                taken = step.operands[1]
                source = stripped(flow, taken)
                loop = flow.parent.get(step.path)
                carried = flow.made_by(source) is None and loop is not None
                if carried and flow.values[source].origin == "input":
                    return not _is_captured(loop, source)
                if any(each.primitive in _EXTREMES for each in flow.above(taken, _any, 60)):
                    return True
                return self._is_shifted(step.operands[0], depth - 1)
            case "neg" | "mul" | "div" | "add" | "select_n":
                return any(self._is_shifted(each, depth - 1) for each in step.operands)
            case _:
                return False

    def _is_selected(self, parts: Sequence[Step], exact: bool = False) -> bool:
        """Whether a `where` that compares the same values selects another form.

        Args:
            exact: whether only comparisons with other numbers than 0 count.
        """
        flow = self.flow
        about: set[int] = set()
        for each in parts:
            for operand in each.operands:
                about |= flow.sources(operand, _is_local, 60) or set()
        about = {each for each in about if self.known.varies(each)}
        for read, user in readers(
            flow, self.step.results[0], lambda step: step.primitive in _NEARBY
        ):
            if user.primitive != "select_n" or flow.of(read) == flow.of(user.operands[0]):
                continue
            for comparison in flow.above(user.operands[0], _joins, 20):
                if comparison.primitive not in _COMPARISONS:
                    continue
                if exact and 0 in map(self.known.literal, comparison.operands):
                    continue
                for side in comparison.operands:
                    if (flow.sources(side, _is_local, 60) or set()) & about:
                        return True
        return False

    def _is_only_compared(self) -> bool:
        """Whether nothing but comparisons reads the result, or its absolute value."""
        through = frozenset({"abs", "neg"}) | MOVES
        number = self.flow.of(self.step.results[0])
        if number in self.flow.outputs:
            return False
        users = [
            user
            for _, user in readers(self.flow, number, lambda step: step.primitive in through)
            if user.primitive not in through
        ]
        return bool(users) and all(user.primitive in _COMPARISONS for user in users)

    def _is_clipped(self, number: int) -> bool:
        step = made(self.flow, number)
        return step is not None and step.primitive in ("clamp", "min", "max")

    def _may_be_small(self, number: int) -> bool:
        """Whether a value is not a whole number, and may be near 0."""
        if not self.known.varies(number) or self.known.is_whole(number):
            return False
        low, high = self.known.bounds(number)
        return low < _NEAR and high > -_NEAR

    def _is_operator(self, step: Step) -> bool:
        """Whether the user wrote an equation as an operator, or as a call of its function."""
        node = parsed(self.reading.quote(step.path))
        if isinstance(node, ast.Call):
            return name_of(node) in ("add", "subtract", "multiply")
        return isinstance(node, ast.BinOp | ast.AugAssign | ast.UnaryOp)

    def _side(self, step: Step, number: int) -> str:
        """Return the text of the operand of a `+` or `-` that is not a literal."""
        node = parsed(self.reading.quote(step.path))
        if not isinstance(node, ast.BinOp):
            return ""
        sides = [each for each in (node.left, node.right) if not isinstance(each, ast.Constant)]
        return short(ast.unparse(sides[0])) if len(sides) == 1 else ""

    def _argument(self, step: Step, names: tuple[str, ...]) -> str:
        """Return the text of the first argument of the user's call of one of some functions."""
        node = parsed(self.reading.quote(step.path))
        if not isinstance(node, ast.Call) or not node.args:
            return ""
        name = name_of(node)
        if names == ("exp",) and name in _DENSITIES:
            logarithm = ast.unparse(node.func).removesuffix(name) + _DENSITIES[name]
            return short(f"{logarithm}({arguments(node)})")
        if name not in names:
            return ""
        if "prod" in names or "softmax" in names:
            return short(arguments(node))
        return short(ast.unparse(node.args[0]))

    def _overflow(self) -> str:
        return f"in {self.floats.name}, `exp(x)` is inf for `x` above {self.floats.greatest:.1f}"

    def _underflow(self, what: str, where: str = "") -> str:
        least = f"in {self.floats.name}, `exp(x)` is 0 for `x` below {self.floats.least:.1f}"
        return f"{least}: {what} is 0 where {where}" if where else f"{least}, so {what} may be 0"

    def _cancels(self, what: str) -> str:
        return f"in {self.floats.name}, {what}"


_NEARBY = (ELEMENTWISE | MOVES | {"reduce_sum"}) - _COMPARISONS - {"select_n"}
_LOCAL = MOVES | {
    "neg", "abs", "add", "sub", "mul", "div", "square", "integer_pow", "select_n", "max", "min",
    "clamp",
}  # fmt: skip


def _is_local(step: Step) -> bool:
    return step.primitive in _LOCAL


def _joins(step: Step) -> bool:
    return step.primitive in _JOINED_BY | MOVES


def _any(step: Step) -> bool:
    return True


def _is_captured(loop: Step | None, number: int) -> bool:
    """Whether an input of a loop's body is one that no iteration changes."""
    if loop is None or loop.primitive != "scan" or not loop.bodies:
        return False
    return number in loop.bodies[0].inputs[: len(captured(loop))]
