"""An occurrence of a form in a program, and what is asked about it."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jaxsight.rules.patterns.programs import Occurrence, ProgramPatterns, Words
from jaxsight.rules.patterns.written import called_by, texts_of
from jaxsight.rules.program.bounds import Bounds, ValueBounds
from jaxsight.rules.program.guards import DECIDES, is_written, selections
from jaxsight.rules.program.loops import loop_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.text.expressions import arguments, called, name_of, parsed_call
from jaxsight.rules.wording import short
from jaxsight.wire.primitives import COMPARISONS, MOVES, PICKS
from jaxsight.wire.program import Step

_FLOATS = {
    "float16": (11.09, -17.32, 2.0**-11),
    "bfloat16": (88.72, -92.88, 2.0**-8),
    "float32": (88.72, -103.97, 2.0**-24),
    "float64": (709.78, -745.13, 2.0**-53),
}
"""From `finfo` of NumPy and `ml_dtypes`: the logarithms of `max` and of half `smallest_subnormal`,
and half of `eps`.
"""
LIMITS: Mapping[str, Mapping[str, float]] = {
    name: {
        "inf": inf,  # `exp` overflows above
        "zero": zero,  # `exp` is 0 below
        "least": math.exp(zero),
        "half": half,  # less is lost beside 1: half the distance to the next greater number
        "one": -math.log(half),  # a sigmoid is 1 above
        "tanh": -math.log(half) / 2 + math.log(2),  # `tanh` is 1 above
        "cosh": inf + math.log(2),  # `cosh` overflows above
        "cos": math.sqrt(2 * half),  # `cos` is 1 below
    }
    for name, (inf, zero, half) in _FLOATS.items()
}
"""By floating-point type the numbers from which functions lose what they compute."""
DENSITIES = {
    "cdf": "logcdf", "sf": "logsf", "pdf": "logpdf", "pmf": "logpmf", "ndtr": "log_ndtr",
    "prob": "log_prob", "survival_function": "log_survival_function",
}  # fmt: skip
"""By the name of a function that of its logarithm."""

_NEAR = 1e-5
"""A function is called inaccurate near 0 where its argument may be as small as this."""
_LOCAL = MOVES | {
    "neg", "abs", "add", "sub", "mul", "div", "square", "integer_pow", "select_n", "max", "min",
    "clamp",
}  # fmt: skip
_EXTREMES = frozenset(
    {"reduce_max", "reduce_min", "max", "min", "cummax", "cummin", "argmax", "argmin", "sort",
     "top_k", "approx_top_k", "pmax", "reduce_window_max", "cumlogsumexp"}
)  # fmt: skip
"""What is subtracted before `exp` where a maximum is."""


@dataclass(frozen=True, slots=True)
class Look:
    """An occurrence of a form, with what is known of the program."""

    view: ProgramView
    known: ValueBounds
    patterns: ProgramPatterns
    found: Occurrence

    @property
    def step(self) -> Step:
        """The equation that completes the form."""
        return self.found.steps[0]

    @property
    def dtype(self) -> str:
        return self.view.flow.value(self.step.results[0]).dtype

    @property
    def limits(self) -> Mapping[str, float]:
        return LIMITS[self.dtype]

    @property
    def held(self) -> list[int]:
        """The values that capital letters stand for."""
        return [number for hole, number in self.found.values.items() if hole.isupper()]

    @property
    def exps(self) -> list[Step]:
        """The exponentials of the form, those that its capital letters stand for too."""
        exps = [exp for number in self.held for exp in exponentials(self.known, number)]
        return exps + [step for step in self.found.steps[1:] if step.primitive == "exp"]

    @property
    def overflows(self) -> bool:
        """Whether an exponential may be infinite."""
        return any(self.known.bounds(exp.operands[0])[1] > self.limits["inf"] for exp in self.exps)

    @property
    def factors(self) -> int:
        """How many factors the product of the form has."""
        product, flow = self.found.steps[1], self.view.flow
        operand, axis = flow.value(product.operands[0]), product.parameter("axis")
        if isinstance(axis, int):
            return operand.shape[axis]
        return operand.elements // max(1, flow.value(product.results[0]).elements)

    def bounds(self) -> Bounds:
        """Return the bounds of `x`."""
        return self.known.bounds(self.found.values["x"])

    def is_whole(self) -> bool:
        """Whether `x` has whole numbers."""
        return self.known.is_whole(self.found.values["x"])

    def may_be_small(self) -> bool:
        """Whether `x` may be near 0, and nothing else is selected there."""
        low, high = self.bounds()
        varies = self.known.varies(self.found.values["x"]) and not self.is_whole()
        return varies and low < _NEAR and high > -_NEAR and not self.is_selected(exact=True)

    def is_wild(self, *, underflow: bool) -> bool:
        """Whether exponentials overflow or all underflow, and no maximum is subtracted."""
        exponents = [exp.operands[0] for exp in self.exps]
        if any(_is_shifted(self.known, exponent) for exponent in exponents):
            return False
        lows = (self.known.bounds(exponent)[0] for exponent in exponents)
        wild = self.overflows or (underflow and all(low < self.limits["zero"] for low in lows))
        return wild and not self.is_selected()

    def is_selected(self, *, exact: bool = False) -> bool:
        """Whether a `where` that compares the same values selects another form.

        Args:
            exact: whether only comparisons with other numbers than 0 count.
        """
        flow = self.view.flow
        held = [number for hole, number in self.found.values.items() if hole.islower()]
        about: set[int] = set()
        for number in [*held, *(exp.operands[0] for exp in self.exps)]:
            about |= flow.sources(number, _LOCAL, 60) or set()
        about = {source for source in about if self.known.varies(source)}
        return any(
            (flow.sources(side, _LOCAL, 60) or set()) & about
            for select in selections(flow, self.step)
            for comparison in flow.backwards(select.operands[0], DECIDES, 30)
            if comparison.primitive in COMPARISONS
            if not (exact and 0 in map(self.known.flow.literal, comparison.operands))
            for side in comparison.operands
        )

    def is_read_by(self, primitives: frozenset[str]) -> bool:
        """Whether one of some primitives reads the result."""
        read = self.view.flow.forwards(self.step.results[0], MOVES)
        return any(user.primitive in primitives for _, user in read)

    def is_only_compared(self) -> bool:
        """Whether only comparisons read the result, or its absolute value."""
        flow, through = self.view.flow, MOVES | {"abs", "neg"}
        users = {user.primitive for _, user in flow.forwards(self.step.results[0], through)}
        is_returned = flow.of(self.step.results[0]) in flow.outputs
        return not is_returned and bool(users - through) and users - through <= COMPARISONS

    def is_near_1(self) -> bool:
        """Whether a logarithm is of the user's own `1 + x` with a small `x`, and no softplus."""
        flow, total = self.view.flow, self.found.steps[1]
        x = flow.maker_of(self.found.values["x"])
        if x is not None and x.primitive == "exp" and self.known.bounds(x.operands[0])[1] > 0:
            return False
        is_own = is_written(self.view.quote(total.path), ("add", "subtract"), (ast.Add, ast.Sub))
        return is_own and flow.maker_of(self.step.operands[0]) is total and self.may_be_small()

    def is_share(self) -> bool:
        """Whether `x` is a probability of a softmax, or is kept from 1."""
        x = self.found.values["x"]
        clipped, picked = (self.view.flow.maker_of(x, also) for also in (frozenset(), PICKS))
        return (clipped is not None and clipped.primitive in ("clamp", "min", "max")) or (
            picked is not None and self.patterns.at(picked, "E / sum(E)") is not None
        )

    def is_mask(self, hole: str) -> bool:
        """Whether a hole stands for what was truth values."""
        flow = self.view.flow
        return flow.values[flow.stripped(self.found.values[hole])].dtype == "bool"

    def is_weighted(self) -> bool:
        """Whether the exponentials are multiplied by something that is not a number."""
        return any(
            maker.primitive == "mul"
            and all(self.known.flow.literal(n) is None for n in maker.operands)
            for number in self.held
            if (maker := self.view.flow.maker_of(number)) is not None
        )

    def elements(self) -> str:
        """Return what to add to a help where a logarithm is of some elements."""
        inside = self.view.flow.maker_of(self.step.operands[0])
        return "" if inside is self.found.steps[1] else ", and take its elements"

    def factor(self) -> str:
        """Return what to add to a help where a logarithm is of a multiple."""
        inside = self.view.flow.maker_of(self.step.operands[0], PICKS)
        is_multiple = inside is not None and inside.primitive in ("div", "mul")
        return ", and add the logarithm of the factor" if is_multiple else ""

    def module(self, name: str) -> str:
        """Return what stands before the name of a function that the user calls, as `norm.`."""
        steps = [step for part, step in self.found.around.values() if called_by(part) == name]
        call = parsed_call(self.view.quote(steps[0].path)) if steps else None
        if call is None or name_of(call) != name:
            return "jax.scipy.special."
        return ast.unparse(call.func).removesuffix(name)

    def filled(self, template: str) -> str:
        """Return a template with what the user wrote, or with its holes if any is unknown."""
        wanted = set(re.findall(r"\{[-(]?(\w+)", template))
        held = [hole for hole in self.found.values if hole.lower() in wanted]
        texts = {hole.lower(): short(self._text(hole)) for hole in held}
        texts = texts_of(texts if all(texts.values()) else {hole: hole for hole in texts})
        log = called(self.view.quote(self.step.path)) or self.step.primitive
        base = {"log2": " / jnp.log(2.0)", "log10": " / jnp.log(10.0)"}.get(log, "")
        texts |= {name: self.module(name) for name in wanted & {"erf", *DENSITIES}}
        texts |= {"log": log, "base": base, "axes": "", "axis": "", "float": self.dtype}
        factors = {"factors": self.factors} if "factors" in wanted else {}
        return template.format_map({**texts, **self.limits, **factors})

    def _text(self, hole: str) -> str:
        """Return what the user wrote for a hole; for a capital letter, the exponent."""
        part, step = self.found.around[hole]
        if hole.isupper():
            exps = list(exponentials(self.known, self.found.values[hole]))
            if len(exps) != 1:
                return ""
            step = exps[0]
        elif called_by(part) != "exp":
            return self.found.text(self.view, hole)
        call = parsed_call(self.view.quote(step.path))
        if call is None or not call.args:
            return ""
        name = name_of(call)
        if name in DENSITIES:
            function = ast.unparse(call.func).removesuffix(name)
            return f"{function}{DENSITIES[name]}({arguments(call)})"
        return ast.unparse(call.args[0]) if name == "exp" else ""


def words_of(known: ValueBounds) -> Words:
    """Return what names and capital letters mean in the patterns of the forms."""

    def measured(number: int) -> int:
        """Return what a value is a part or a multiple of: means are sums."""
        parts = PICKS | {"abs"}
        step = known.flow.maker_of(number, parts)
        if step is not None and step.primitive in ("div", "mul"):
            first, second = step.operands
            if known.flow.literal(second) is not None:
                return measured(first)
            if known.flow.literal(first) is not None and step.primitive == "mul":
                return measured(second)
        return known.flow.stripped(number, parts)

    return Words(
        {"softmax": "E / sum(E)", "mean": "sum(_) / N | sum(_) * N"},
        lambda number: any(exponentials(known, number)),
        {"log": measured},
    )


def exponentials(known: ValueBounds, number: int, depth: int = 4) -> Iterator[Step]:
    """Yield the exponentials in a product with weights, or in a selection with zeros."""
    step = known.flow.maker_of(number)
    if step is None or not depth:
        return
    match step.primitive:
        case "exp" if known.varies(step.operands[0]):
            yield step
        case "mul" | "div" | "concatenate" | "select_n":
            parts = step.operands[:1] if step.primitive == "div" else step.operands
            if step.primitive == "select_n":
                parts = step.operands[1:]
                if 0 not in map(known.flow.literal, parts):
                    return
            for part in parts:
                yield from exponentials(known, part, depth - 1)


def _is_shifted(known: ValueBounds, number: int, depth: int = 6) -> bool:
    """Whether something like a maximum is subtracted from an exponent."""
    flow = known.flow
    step = flow.maker_of(number, PICKS)
    if step is None or not depth:
        return False
    match step.primitive:
        case "sub":
            source, loop = flow.stripped(step.operands[1]), flow.parent.get(step.path)
            is_input = flow.producer(source) is None and flow.values[source].origin == "input"
            if loop is not None and is_input:
                # A loop may carry the maximum so far; what no iteration changes is none.
                scan = loop_of(flow, loop) if loop.primitive == "scan" else None
                return scan is None or source not in scan.captured
            above = flow.backwards(step.operands[1], lambda _: True, 60)
            if any(maker.primitive in _EXTREMES for maker in above):
                return True
            return _is_shifted(known, step.operands[0], depth - 1)
        case "neg" | "mul" | "div" | "add" | "select_n":
            return any(_is_shifted(known, operand, depth - 1) for operand in step.operands)
        case _:
            return False
