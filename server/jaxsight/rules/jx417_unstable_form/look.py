"""What the forms share: how equations are looked at, and the words on their limits."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.program.bounds import KnownValues
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import selections
from jaxsight.rules.program.steps import captured
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import alike, maker_of, stripped
from jaxsight.rules.text.expressions import arguments, name_of, parsed
from jaxsight.rules.wording import short
from jaxsight.wire.primitives import COMPARISONS, MOVES, PICKS
from jaxsight.wire.program import Step


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
class Float:
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


FLOATS = {
    "float16": Float("float16", 11.09, -17.32, 2.0**-11),
    "bfloat16": Float("bfloat16", 88.72, -92.88, 2.0**-8),
    "float32": Float("float32", 88.72, -103.97, 2.0**-24),
    "float64": Float("float64", 709.78, -745.13, 2.0**-53),
}
"""From `finfo` of NumPy and `ml_dtypes`: the logarithms of `max` and of half `smallest_subnormal`,
and half of `eps`.
"""

DENSITIES = {
    "cdf": "logcdf", "sf": "logsf", "pdf": "logpdf", "pmf": "logpmf", "ndtr": "log_ndtr",
    "prob": "log_prob", "survival_function": "log_survival_function",
}  # fmt: skip
"""By the name of a function that of its logarithm."""

_EXTREMES = frozenset(
    {"reduce_max", "reduce_min", "max", "min", "cummax", "cummin", "argmax", "argmin", "sort",
     "top_k", "approx_top_k", "pmax", "reduce_window_max", "cumlogsumexp"}
)  # fmt: skip
"""What is subtracted before `exp` where a maximum is."""
_JOINED_BY = MOVES | {"and", "or", "not"}
_NEAR = 1e-5
"""A function is called inaccurate near 0 where its argument may be as small as this."""
_LOCAL = MOVES | {
    "neg", "abs", "add", "sub", "mul", "div", "square", "integer_pow", "select_n", "max", "min",
    "clamp",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Look:
    """One equation of the user's that is looked at."""

    view: ProgramView
    known: KnownValues
    step: Step
    floats: Float

    @property
    def flow(self) -> Flow:
        return self.view.flow

    def _may_overflow(self, exp: Step) -> bool:
        return self.known.bounds(exp.operands[0])[1] > self.floats.greatest

    def _softmax(self, step: Step) -> list[Step]:
        """Return the exponentials of a quotient that is a softmax: numbers by their own sum."""
        flow = self.flow
        if step.primitive != "div":
            return []
        above = stripped(flow, step.operands[0])
        total = maker_of(flow, step.operands[1])
        if total is None or total.primitive != "reduce_sum":
            return []
        summed = stripped(flow, total.operands[0])
        if not alike(flow, above, summed):
            return []
        return list(self._exps(above))

    def _is_softmax(self, number: int) -> bool:
        step = maker_of(self.flow, number, PICKS)
        return step is not None and bool(self._softmax(step))

    def _scaled(self, number: int) -> int:
        """Return what a value is a multiple of by literals: means are sums."""
        step = maker_of(self.flow, number, PICKS)
        if step is not None and step.primitive in ("div", "mul"):
            for index, factor_index in ((0, 1), (1, 0))[: 1 if step.primitive == "div" else 2]:
                if self.known.literal(step.operands[factor_index]) is not None:
                    return self._scaled(step.operands[index])
        return stripped(self.flow, number, PICKS)

    def _terms(self, step: Step) -> list[int]:
        """Return what a sum that is written with `+` is of."""
        if step.primitive != "add":
            return []
        terms: list[int] = []
        for number in step.operands:
            inner = maker_of(self.flow, number)
            terms += (inner is not None and self._terms(inner)) or [number]
        return terms

    def _exps(self, number: int, depth: int = 4) -> Iterator[Step]:
        """Yield the exponentials in a product with weights, or in a selection with zeros."""
        flow = self.flow
        step = maker_of(flow, number)
        if step is None or not depth:
            return
        match step.primitive:
            case "exp" if self.known.varies(step.operands[0]):
                yield step
            case "mul":
                for operand in step.operands:
                    yield from self._exps(operand, depth - 1)
            case "div":
                yield from self._exps(step.operands[0], depth - 1)
            case "select_n":
                cases = step.operands[1:]
                if any(self.known.literal(case) == 0 for case in cases):
                    for operand in cases:
                        yield from self._exps(operand, depth - 1)
            case "concatenate":
                for operand in step.operands:
                    yield from self._exps(operand, depth - 1)

    def _is_tame(self, exps: Sequence[Step], underflow: bool = True) -> bool:
        """Whether exponentials neither overflow, nor all underflow, or a maximum is subtracted."""
        if any(self._is_shifted(exp.operands[0]) for exp in exps):
            return True
        if not any(self.known.varies(exp.operands[0]) for exp in exps):
            return True
        limits = [self.known.bounds(exp.operands[0]) for exp in exps]
        over = any(high > self.floats.greatest for _, high in limits)
        under = all(low < self.floats.least for low, _ in limits)
        return not over and not (underflow and under)

    def _is_shifted(self, number: int, depth: int = 6) -> bool:
        """Whether something like a maximum is subtracted from an exponent."""
        flow = self.flow
        step = maker_of(flow, number, PICKS)
        if step is None or not depth:
            return False
        match step.primitive:
            case "sub":
                subtracted = step.operands[1]
                source = stripped(flow, subtracted)
                loop = flow.parent.get(step.path)
                carried = flow.made_by(source) is None and loop is not None
                if carried and flow.values[source].origin == "input":
                    return not _is_captured(loop, source)
                if any(
                    step.primitive in _EXTREMES for step in flow.backwards(subtracted, _any, 60)
                ):
                    return True
                return self._is_shifted(step.operands[0], depth - 1)
            case "neg" | "mul" | "div" | "add" | "select_n":
                return any(self._is_shifted(operand, depth - 1) for operand in step.operands)
            case _:
                return False

    def _is_selected(self, parts: Sequence[Step], exact: bool = False) -> bool:
        """Whether a `where` that compares the same values selects another form.

        Args:
            exact: whether only comparisons with other numbers than 0 count.
        """
        flow = self.flow
        about: set[int] = set()
        for part in parts:
            for operand in part.operands:
                about |= flow.sources(operand, _LOCAL, 60) or set()
        about = {source for source in about if self.known.varies(source)}
        for select in selections(flow, self.step):
            for comparison in flow.backwards(select.operands[0], _JOINED_BY, 20):
                if comparison.primitive not in COMPARISONS:
                    continue
                if exact and 0 in map(self.known.literal, comparison.operands):
                    continue
                for side in comparison.operands:
                    if (flow.sources(side, _LOCAL, 60) or set()) & about:
                        return True
        return False

    def _is_only_compared(self) -> bool:
        """Whether nothing but comparisons reads the result, or its absolute value."""
        through = frozenset({"abs", "neg"}) | MOVES
        number = self.flow.of(self.step.results[0])
        if number in self.flow.outputs:
            return False
        users = [
            user for _, user in self.flow.forwards(number, through) if user.primitive not in through
        ]
        return bool(users) and all(user.primitive in COMPARISONS for user in users)

    def _is_clipped(self, number: int) -> bool:
        step = maker_of(self.flow, number)
        return step is not None and step.primitive in ("clamp", "min", "max")

    def _may_be_small(self, number: int) -> bool:
        """Whether a value is not a whole number, and may be near 0."""
        if not self.known.varies(number) or self.known.is_whole(number):
            return False
        low, high = self.known.bounds(number)
        return low < _NEAR and high > -_NEAR

    def _is_operator(self, step: Step) -> bool:
        """Whether the user wrote an equation as an operator, or as a call of its function."""
        node = parsed(self.view.quote(step.path))
        if isinstance(node, ast.Call):
            return name_of(node) in ("add", "subtract", "multiply")
        return isinstance(node, ast.BinOp | ast.AugAssign | ast.UnaryOp)

    def _side(self, step: Step, number: int) -> str:
        """Return the text of the operand of a `+` or `-` that is not a literal."""
        node = parsed(self.view.quote(step.path))
        if not isinstance(node, ast.BinOp):
            return ""
        sides = [side for side in (node.left, node.right) if not isinstance(side, ast.Constant)]
        return short(ast.unparse(sides[0])) if len(sides) == 1 else ""

    def _argument(self, step: Step, names: tuple[str, ...]) -> str:
        """Return the text of the first argument of the user's call of one of some functions."""
        node = parsed(self.view.quote(step.path))
        if not isinstance(node, ast.Call) or not node.args:
            return ""
        name = name_of(node)
        if names == ("exp",) and name in DENSITIES:
            logarithm = ast.unparse(node.func).removesuffix(name) + DENSITIES[name]
            return short(f"{logarithm}({arguments(node)})")
        if name not in names:
            return ""
        if "prod" in names or "softmax" in names:
            return short(arguments(node))
        return short(ast.unparse(node.args[0]))

    def _overflow(self) -> str:
        return f"in {self.floats.name}, `exp(x)` is inf for `x` above {self.floats.greatest:.1f}"

    def _underflow(self, subject: str, where: str = "") -> str:
        least = f"in {self.floats.name}, `exp(x)` is 0 for `x` below {self.floats.least:.1f}"
        return (
            f"{least}: {subject} is 0 where {where}" if where else f"{least}, so {subject} may be 0"
        )

    def _cancels(self, form: str) -> str:
        return f"in {self.floats.name}, {form}"


def _any(step: Step) -> bool:
    return True


def _is_captured(loop: Step | None, number: int) -> bool:
    """Whether an input of a loop's body is one that no iteration changes."""
    if loop is None or loop.primitive != "scan" or not loop.bodies:
        return False
    return number in loop.bodies[0].inputs[: len(captured(loop))]
