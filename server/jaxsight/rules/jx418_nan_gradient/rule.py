"""JX418: a gradient that is NaN or infinite at a point that inputs reach."""

# Longer than most rules: a table of functions without a derivative, and whether the program
# differentiates them there.

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.patterns.programs import Occurrence, ProgramPatterns
from jaxsight.rules.program.bounds import ValueBounds
from jaxsight.rules.program.guards import has_rule, is_flat, is_in_branch, is_written, selections
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, SeverityName, Violation
from jaxsight.rules.text.expressions import name_of, parsed_call
from jaxsight.wire.primitives import MOVES, PICKS
from jaxsight.wire.program import Step

# The functions without a derivative somewhere: as users write them, and what is wrong there.

_SPREADS = frozenset({"broadcast_in_dim", "reshape", "expand_dims", "squeeze"})
"""Primitives whose result has all elements of their operand, in the same order."""
_POWERS = frozenset({"pow", "power", "float_power"})
_NORMS = frozenset({"norm", "vector_norm"})
_STDS = frozenset({"std", "nanstd"})
WRITTEN: dict[str, frozenset[str]] = {
    "sqrt": _POWERS | _NORMS | _STDS | {"sqrt"},
    "rsqrt": frozenset({"rsqrt"}),
    "pow": _POWERS | _NORMS,
    "cbrt": frozenset({"cbrt"}),
    "acos": frozenset({"acos", "arccos"}),
    "asin": frozenset({"asin", "arcsin"}),
    "acosh": frozenset({"acosh", "arccosh"}),
    "atan2": frozenset({"atan2", "arctan2"}),
}
"""By primitive the functions that users write it with."""


def names_called(text: str) -> Iterator[str]:
    """Yield what a call calls and passes: `grad` and `norm` of `jax.grad(jnp.linalg.norm)(x)`."""
    call = parsed_call(text)
    if call is not None:
        yield name_of(call)
        for node in ast.walk(call):
            if isinstance(node, ast.Call):
                yield from (arg.attr for arg in node.args if isinstance(arg, ast.Attribute))


@dataclass(frozen=True, slots=True)
class Differentiated:
    """A differentiated equation of the user's, which one of the patterns below describes."""

    view: ProgramView
    known: ValueBounds
    found: Occurrence

    @property
    def step(self) -> Step:
        return self.found.steps[0]

    @property
    def name(self) -> str:
        """The name of the function that the user calls here or passes on; else of the function."""
        primitive = self.step.primitive
        names = names_called(self.view.quote(self.step.path))
        default = f"arc{primitive[1:]}" if primitive.startswith("a") else primitive
        return next((name for name in names if name in WRITTEN[primitive]), default)

    @property
    def exponent(self) -> float:
        """The exponent of a power; 1 where it is not known."""
        exponent = self.view.flow.literal(self.step.operands[1])
        return 1 if exponent is None else exponent

    def filled(self, template: str) -> str:
        """Return a template with names and numbers."""
        name, p = self.name, self.exponent if self.step.primitive == "pow" else 1
        minus = "-" if "cos" in name else ""
        plain = "sqrt" if name in _NORMS else name
        return template.format(name=name, plain=plain, p=p, less=p - 1, minus=minus)

    def is_free(self) -> bool:
        """Whether no operand is kept away from 0: positive, or selected by a comparison."""
        count = 2 if self.step.primitive == "atan2" else 1
        return not any(
            self.known.is_positive(operand) or self.is_selected(operand)
            for operand in self.step.operands[:count]
        )

    def is_root(self) -> bool:
        """Whether a power is between 0 and 1, and of what may be 0."""
        return 0 < self.exponent < 1 and self.is_free()

    def has_exponent_0(self) -> bool:
        """Whether a power has an array of floats as exponents, some of them 0, of what may be 0."""
        flow = self.view.flow
        exponents = flow.values[flow.stripped(self.step.operands[1])].numbers
        return 0 in exponents and self.is_free()

    def is_selected(self, number: int) -> bool:
        """Whether a value comes from a selection by values, or has a constant added."""
        flow, varies = self.view.flow, self.known.varies
        through = MOVES | PICKS | {"reduce_sum", "square", "integer_pow", "neg", "abs"}
        step = flow.maker_of(number, through)
        for _ in range(4):
            if step is None:
                return False
            if step.primitive == "select_n":
                return varies(step.operands[0])
            if step.primitive in ("add", "sub") and step.path != self.step.path:
                offsets = [flow.literal(operand) for operand in step.operands]
                if any(offset is not None and 0 < abs(offset) < 1e-2 for offset in offsets):
                    return True
                if step.primitive == "add" and not all(map(varies, step.operands)):
                    return 0 not in offsets
            if step.primitive not in ("mul", "div", "max", "min", "clamp"):
                return False
            index = 1 if step.primitive == "clamp" else 0
            if step.primitive == "mul" and varies(step.operands[1]):
                index = 1
            step = flow.maker_of(step.operands[index], through)
        return False

    def reaches_1(self) -> bool:
        """Whether `x` may be -1 or 1, and nothing is selected there."""
        low, high = self.known.bounds(self.found.values["x"])
        return (low <= -1 or high >= 1) and not self.is_selected(self.found.values["x"])

    def is_clipped(self) -> bool:
        """Whether `x` is clipped."""
        clip = self.view.flow.maker_of(self.found.values["x"])
        return clip is not None and clip.primitive in ("clamp", "min", "max")

    def is_offset(self) -> bool:
        """Whether `x` is selected by values, is above 1, or something and a number above 1."""
        step = self.view.flow.maker_of(self.found.values["x"])
        if step is not None and step.primitive == "add":
            offsets = map(self.view.flow.literal, step.operands)
            return any(offset is not None and offset > 1 for offset in offsets)
        is_selected = step is not None and step.primitive == "select_n"
        return is_selected or self.known.bounds(self.found.values["x"])[0] > 1

    def is_angle(self) -> bool:
        """Whether both arguments of `arctan2` may be 0, and are no sine and cosine."""
        flow, operands = self.view.flow, self.step.operands
        is_off_0 = any(low > 0 or high < 0 for low, high in map(self.known.bounds, operands))
        if is_off_0 or not self.is_free() or not all(map(self.known.varies, operands)):
            return False
        near = MOVES | PICKS | {"mul", "add", "sub", "neg", "reduce_sum"}
        makers = [flow.maker_of(operand) for operand in operands]
        parts = [step for number in operands for step in flow.backwards(number, near, 30)]
        names = {step.primitive for step in [*makers, *parts] if step is not None}
        return None in makers or not {"sin", "cos"} <= names

    def is_between_all(self) -> bool:
        """Whether `x` has the differences of all pairs of some values."""
        sides = [self.found.values[hole] for hole in "ab"]
        flow = self.view.flow
        makers = [flow.producer(side) for side in sides]
        if None in makers or not flow.alike(*(flow.before(side, _SPREADS) for side in sides)):
            return False
        shapes = [flow.value(side).shape for side in sides]
        axes = [maker.parameter("broadcast_dimensions") for maker in makers if maker is not None]
        return shapes[0] != shapes[1] or axes[0] != axes[1]

    def is_of_chosen_pairs(self) -> bool:
        """Return whether a difference is between rows that two constant index arrays select.

        Its author chose the pairs, and a point is not paired with itself.
        """
        flow = self.view.flow
        chosen: list[set[int]] = []
        for hole in "ab":
            side = flow.maker_of(self.found.values[hole])
            if side is None or side.primitive != "gather":
                return False
            sources = flow.sources(side.operands[1], lambda _: True)
            if not sources or not all(flow.value(source).is_constant for source in sources):
                return False
            chosen.append({source for source in sources if flow.value(source).shape})
        return all(chosen) and chosen[0] != chosen[1]


@dataclass(frozen=True, slots=True)
class Singularity:
    """Where the derivative of a function is NaN or infinite."""

    pattern: str
    message: str
    """Empty where nothing is wrong."""
    help: str = ""
    notes: tuple[str, ...] = ()
    is_met: Callable[[Differentiated], bool] = Differentiated.is_free
    """Whether inputs reach it."""
    of_squares: bool = False
    """Whether the fix guards it: the root of a sum of squares."""
    severity: SeverityName | Literal[""] = ""


_OF_DIFFERENCES = "sqrt(sum((a - b) ** 2)) | sqrt(dot(a - b, a - b))"
_OF_SQUARES = "sqrt(sum(a ** 2)) | sqrt(dot(a, a))"
_NAN = "NaN is the product of the infinite derivative and 0, as of the chain rule through a square"
_ROOT = ("the derivative of a root is infinite at 0", _NAN)
_CLIP = "clip inside of the bounds: `jnp.{name}(jnp.clip(x, -1 + 1e-6, 1 - 1e-6))`"
_OF_AN_INVERSE = "the derivative of `{name}(x)` is `{minus}1 / sqrt(1 - x**2)`"
_GUARD = (
    "add a small number under the root: `jnp.sqrt(jnp.sum(x**2) + 1e-12)`, or guard it with two "
    "`where`"
)
SINGULARITIES = (
    Singularity(
        "sqrt(x)",
        "gradient of `{name}` is NaN where all values are equal",
        "add a small number to the variance: `jnp.sqrt(jnp.var(x) + 1e-12)`",
        _ROOT,
        lambda step: step.name in _STDS and step.is_free(),
    ),
    Singularity(
        _OF_DIFFERENCES,
        "gradient of pairwise distances is NaN: a point is at distance 0 from itself",
        _GUARD,
        _ROOT,
        lambda step: step.is_free() and step.is_between_all(),
        of_squares=True,
        severity="error",
    ),
    Singularity(
        _OF_DIFFERENCES,
        "gradient of `{name}` is NaN where the difference is 0",
        _GUARD,
        _ROOT,
        lambda step: step.is_free() and not step.is_of_chosen_pairs(),
        of_squares=True,
    ),
    Singularity(_OF_DIFFERENCES, ""),
    Singularity(
        _OF_SQUARES,
        "gradient of `{name}` is NaN where all elements are 0",
        _GUARD,
        _ROOT,
        of_squares=True,
    ),
    Singularity(
        "sqrt(x)",
        "gradient of `{plain}` is infinite at 0",
        "keep the operand above 0: `jnp.sqrt(x + 1e-12)` or `jnp.sqrt(jnp.maximum(x, 1e-12))`",
        ("the derivative of `sqrt(x)` is `0.5 / sqrt(x)`",),
        lambda step: step.is_free() and step.known.bounds(step.found.values["x"])[1] > 0,
    ),
    Singularity(
        "rsqrt(x)",
        "`rsqrt` is infinite at 0, and its gradient NaN or infinite",
        "keep the operand above 0: `jax.lax.rsqrt(x + 1e-6)`",
        ("the derivative of `rsqrt(x)` is `-0.5 * rsqrt(x) / x`",),
    ),
    Singularity(
        "pow(x, y)",
        "gradient of `norm` is NaN where all elements are 0",
        "add a small number to the sum before its root",
        _ROOT,
        lambda step: step.name == "norm" and step.is_root(),
    ),
    Singularity(
        "pow(x, y)",
        "gradient of `x ** {p:.3g}` is infinite where `x` is 0",
        "keep the operand above 0: `jnp.maximum(x, 1e-12)`",
        ("the derivative is `{p:.3g} * x ** {less:.3g}`",),
        Differentiated.is_root,
    ),
    Singularity(
        "pow(x, y)",
        "gradient of `x ** y` is NaN where `x` and an element of `y` are 0",
        "give integer exponents: `x ** y.astype(int)`; or replace `x` by 1 where `y` is 0",
        ("the derivative is `y * x ** (y - 1)`, 0 times infinity",),
        Differentiated.has_exponent_0,
    ),
    Singularity(
        "cbrt(x)",
        "gradient of `cbrt` is infinite at 0",
        "keep the operand away from 0",
        ("the derivative of `cbrt(x)` is `cbrt(x)**-2 / 3`",),
    ),
    Singularity(
        "acos(x) | asin(x)",
        "gradient of `{name}` is NaN where `clip` takes effect",
        _CLIP,
        (
            _OF_AN_INVERSE,
            "outside of its bounds the derivative of `clip` is 0: 0 times infinity is NaN",
        ),
        lambda step: step.reaches_1() and step.is_clipped(),
    ),
    Singularity(
        "acos(x) | asin(x)",
        "gradient of `{name}` is infinite where its argument is -1 or 1",
        _CLIP,
        (_OF_AN_INVERSE,),
        Differentiated.reaches_1,
    ),
    Singularity(
        "acosh(x)",
        "gradient of `arccosh` is infinite where its argument is 1",
        "keep the operand above 1: `jnp.arccosh(jnp.maximum(x, 1 + 1e-6))`",
        ("the derivative of `arccosh(x)` is `1 / sqrt(x**2 - 1)`",),
        lambda step: not step.is_offset(),
    ),
    Singularity(
        "atan2(y, x)",
        "gradient of `{name}` is NaN where both arguments are 0",
        "guard the origin: `jnp.{name}(y, jnp.where((x == 0) & (y == 0), 1.0, x))`",
        ("the derivatives are `x / (x**2 + y**2)` and `-y / (x**2 + y**2)`",),
        Differentiated.is_angle,
    ),
)


# Whether an equation is differentiated: by the program itself, or by the module's text.


def is_differentiated(view: ProgramView, step: Step) -> bool:
    """Whether the program, or the text of the module, differentiates an equation."""
    flow = view.flow
    of_result, made, near = _FACTORS[step.primitive]
    if any(
        user.primitive in made and user.path != step.path and user.span == step.span
        for number in (step.results if of_result else step.operands)
        for _, user in flow.forwards(number, near, 20)
    ):
        users = [
            user
            for user in flow.used_by(step.results[0])
            if user.span != step.span or user.primitive == "stop_gradient"
        ]
        return not users or not all(is_flat(flow, user) for user in users)
    return bool(view.differentiated) and any(
        _depends_on_parameter(view, operand) for operand in step.operands
    )


def _depends_on_parameter(view: ProgramView, number: int) -> bool:
    """Whether a value depends on a parameter that the module differentiates by."""
    flow = view.flow
    sources = flow.sources(number, lambda step: not is_flat(flow, step), 500)
    return any(
        number in flow.inputs
        and flow.value(number).is_inexact
        and re.split(r"[\[.]", flow.values[number].said)[0] in view.differentiated
        for number in sources or ()
    )


_DIVISION = frozenset({"div"})
_SQUARES = frozenset({"square", "mul", "integer_pow", "add", "neg"})
_OF_INVERSE = (False, frozenset({"rsqrt", "sqrt"}), _SQUARES | {"one_minus_square", "sub"})
_FACTORS: dict[str, tuple[bool, frozenset[str], frozenset[str]]] = {
    "sqrt": (True, _DIVISION, frozenset()),
    "rsqrt": (True, _DIVISION, frozenset()),
    "pow": (False, frozenset({"pow"}), frozenset()),
    "cbrt": (True, frozenset({"integer_pow"}), frozenset()),
    "acos": _OF_INVERSE,
    "asin": _OF_INVERSE,
    "acosh": _OF_INVERSE,
    "atan2": (False, _DIVISION, _SQUARES),
}
"""By primitive where a program has the factor of its derivative, by JAX's rules in
`jax/_src/lax/lax.py`: whether it is computed of the result rather than the operands, the primitives
that compute it where the function is written, and those between the operands and these.
"""


RULE = Rule(
    __name__, "Gradient that is NaN or infinite at a point that inputs reach.", severity="warning"
)


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the user's own functions that are differentiated where they have no derivative.

    They are differentiated if the program has the factor of their derivative, or if the module's
    text differentiates the function by an argument that they depend on. Functions with derivative
    rules of their own (`custom_jvp`, `custom_vjp`) are trusted.
    """
    flow, known = view.flow, ValueBounds(view.flow)
    patterns = ProgramPatterns(view)
    for step in flow.steps.values():
        if not _is_written(view.quote(step.path), step.primitive):
            continue
        if not known.varies(step.operands[0]) or has_rule(view, step) or is_in_branch(flow, step):
            continue
        if not is_differentiated(view, step) or _is_selected(view, step):
            continue
        for row in SINGULARITIES:
            found = patterns.at(step, row.pattern)
            if found is not None and row.is_met(met := Differentiated(view, known, found)):
                if row.message:
                    yield Violation(
                        met.filled(row.message),
                        step.path,
                        help=met.filled(row.help),
                        notes=tuple(map(met.filled, row.notes)),
                        data=row.of_squares or None,
                        severity=row.severity,
                    )
                break


def _is_written(text: str, primitive: str) -> bool:
    """Whether an expression is itself a call or a power that the primitive is written with."""
    written = WRITTEN.get(primitive, frozenset())
    is_power = primitive in ("sqrt", "pow") and is_written(text, (), (ast.Pow,))
    return is_power or not written.isdisjoint(names_called(text))


def _is_selected(view: ProgramView, step: Step) -> bool:
    """Whether the user selects the result by its operand: that is JX405's to report."""
    flow = view.flow
    own = flow.sources(step.operands[0], lambda step: bool(step.operands), 200) or set()
    for user in selections(flow, step, 12):
        if user.backward or not view.wrote(user.path, "where", "select"):
            continue
        if all(step in flow.backwards(case, lambda _: True) for case in user.operands[1:]):
            continue  # both cases have it: the selection hides nothing
        compared = flow.sources(user.operands[0], lambda step: bool(step.operands), 200) or set()
        if compared & own:
            return True
    return False


# The fix: guard the root of a sum of squares with two `where`.

_AXES = frozenset({"axis", "keepdims"})


@RULE.corrects("two `where` around the root of a sum of squares")
def candidates(context: FixContext, of_squares: bool) -> Iterator[Candidate]:
    """Yield `where(s > 0, sqrt(where(s > 0, s, 1.0)), 0.0)` for `sqrt(s)` and for norms."""
    if not context.jnp:
        return
    for call in context.find(ast.Call):
        if (squares := _squares(context, call)) is None:
            continue
        if (statement := context.statement(call)) is None:
            return
        name, jnp = context.fresh("squares"), context.jnp
        root = f"{jnp}.sqrt({jnp}.where({name} > 0, {name}, 1.0))"
        yield Candidate(
            "Guard the root with two `where`",
            (
                context.before(statement, f"{name} = {squares}"),
                context.replace(call, f"{jnp}.where({name} > 0, {root}, 0.0)"),
            ),
            same=False,  # NaN is no longer what it was
        )
        return


def _squares(context: FixContext, call: ast.Call) -> str | None:
    """Return the text of the sum of squares that a call takes the root of."""
    function = context.called(call.func)
    if function in ("jax.numpy.sqrt", "jax.lax.sqrt") and len(call.args) == 1:
        return context.on_its_own(call.args[0])
    if function != "jax.numpy.linalg.norm" or len(call.args) != 1:
        return None
    if any(key.arg not in _AXES for key in call.keywords):
        return None
    keywords = "".join(f", {key.arg}={context.text(key.value)}" for key in call.keywords)
    return f"{context.jnp}.sum({context.operand(call.args[0])} ** 2{keywords})"
