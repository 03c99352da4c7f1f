"""What is wrong with the gradient of each function, and where."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxsight.rules.jx418_nan_gradient.functions import WRITTEN, passed_functions
from jaxsight.rules.program.bounds import KnownValues
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.steps import is_known, parameter
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import alike, literal, maker_of, stripped
from jaxsight.rules.text.expressions import called, name_of, parsed
from jaxsight.rules.violation import Violation
from jaxsight.wire.primitives import MOVES, PICKS
from jaxsight.wire.program import Step

_SPREADS = frozenset({"broadcast_in_dim", "reshape", "expand_dims", "squeeze"})
_NAN = "NaN is the product of the infinite derivative and 0, as of the chain rule through a square"
_OF_SQUARES = (
    "add a small number under the root: `jnp.sqrt(jnp.sum(x**2) + 1e-12)`, or guard it with two "
    "`where`"
)


@dataclass(frozen=True, slots=True)
class Squares:
    """The root of a sum of squares, for the fix."""

    function: str
    """What the user calls: `sqrt` or `norm`."""


@dataclass(frozen=True, slots=True)
class Differentiated:
    """One differentiated equation of the user's."""

    view: ProgramView
    known: KnownValues
    step: Step

    @property
    def flow(self) -> Flow:
        return self.view.flow

    def _name(self, default: str) -> str:
        """Return the name of the function that the user calls here, or passes on."""
        node = parsed(self.view.quote(self.step.path))
        if not isinstance(node, ast.Call):
            return default
        names = [name_of(node), *passed_functions(node)]
        return next((n for n in names if n in WRITTEN[self.step.primitive]), default)

    def root(self) -> Violation | None:
        """Return what is wrong with a square root, a norm or a standard deviation."""
        operand = self.step.operands[0]
        if self._is_guarded(operand):
            return None
        name = self._name("sqrt")
        if name in ("std", "nanstd"):
            return Violation(
                f"gradient of `{name}` is NaN where all values are equal",
                self.step.path,
                help="add a small number to the variance: `jnp.sqrt(jnp.var(x) + 1e-12)`",
                notes=("the derivative of a root is infinite at 0", _NAN),
            )
        base = self._squared(operand)
        if base is None:
            return self._plain(name)
        if self._is_between_all(base):
            return Violation(
                "gradient of pairwise distances is NaN: a point is at distance 0 from itself",
                self.step.path,
                help=_OF_SQUARES,
                notes=("the derivative of a root is infinite at 0", _NAN),
                data=Squares(name),
                severity="error",
            )
        difference = self._is_difference(base)
        if difference and self._is_of_chosen_pairs(base):
            return None
        return Violation(
            f"gradient of `{name}` is NaN where "
            + ("the difference is 0" if difference else "all elements are 0"),
            self.step.path,
            help=_OF_SQUARES,
            notes=("the derivative of a root is infinite at 0", _NAN),
            data=Squares(name),
        )

    def _plain(self, name: str) -> Violation | None:
        if self.known.bounds(self.step.operands[0])[1] <= 0:
            return None
        return Violation(
            f"gradient of `{'sqrt' if 'norm' in name else name}` is infinite at 0",
            self.step.path,
            help="keep the operand above 0: `jnp.sqrt(x + 1e-12)` or "
            "`jnp.sqrt(jnp.maximum(x, 1e-12))`",
            notes=("the derivative of `sqrt(x)` is `0.5 / sqrt(x)`",),
        )

    def inverse_root(self) -> Violation | None:
        """Return what is wrong with an inverse square root."""
        if self._is_guarded(self.step.operands[0]):
            return None
        return Violation(
            "`rsqrt` is infinite at 0, and its gradient NaN or infinite",
            self.step.path,
            help="keep the operand above 0: `jax.lax.rsqrt(x + 1e-6)`",
            notes=("the derivative of `rsqrt(x)` is `-0.5 * rsqrt(x) / x`",),
        )

    def power(self) -> Violation | None:
        """Return what is wrong with a power between 0 and 1."""
        exponent = literal(self.flow, self.step.operands[1])
        if exponent is None or not 0 < exponent < 1 or self._is_guarded(self.step.operands[0]):
            return None
        if called(self.view.quote(self.step.path)) == "norm":
            return Violation(
                "gradient of `norm` is NaN where all elements are 0",
                self.step.path,
                help="add a small number to the sum before its root",
                notes=("the derivative of a root is infinite at 0", _NAN),
            )
        return Violation(
            f"gradient of `x ** {exponent:.3g}` is infinite where `x` is 0",
            self.step.path,
            help="keep the operand above 0: `jnp.maximum(x, 1e-12)`",
            notes=(f"the derivative is `{exponent:.3g} * x ** {exponent - 1:.3g}`",),
        )

    def cube_root(self) -> Violation | None:
        """Return what is wrong with a cube root."""
        if self._is_guarded(self.step.operands[0]):
            return None
        return Violation(
            "gradient of `cbrt` is infinite at 0",
            self.step.path,
            help="keep the operand away from 0",
            notes=("the derivative of `cbrt(x)` is `cbrt(x)**-2 / 3`",),
        )

    def inverse(self) -> Violation | None:
        """Return what is wrong with `arccos` or `arcsin`."""
        low, high = self.known.bounds(self.step.operands[0])
        if (low > -1 and high < 1) or self._is_selected_before(self.step.operands[0]):
            return None
        name = self._name(f"arc{self.step.primitive[1:]}")
        clip = maker_of(self.flow, self.step.operands[0])
        clipped = clip is not None and clip.primitive in ("clamp", "min", "max")
        minus = "-" if "cos" in name else ""
        notes: tuple[str, ...] = (f"the derivative of `{name}(x)` is `{minus}1 / sqrt(1 - x**2)`",)
        if clipped:
            notes += (
                "outside of its bounds the derivative of `clip` is 0: 0 times infinity is NaN",
            )
        return Violation(
            f"gradient of `{name}` is NaN where `clip` takes effect"
            if clipped
            else f"gradient of `{name}` is infinite where its argument is -1 or 1",
            self.step.path,
            help=f"clip inside of the bounds: `jnp.{name}(jnp.clip(x, -1 + 1e-6, 1 - 1e-6))`",
            notes=notes,
        )

    def inverse_hyperbolic(self) -> Violation | None:
        """Return what is wrong with `arccosh`."""
        if self.known.bounds(self.step.operands[0])[0] > 1:
            return None
        if self._has_offset():
            return None
        return Violation(
            "gradient of `arccosh` is infinite where its argument is 1",
            self.step.path,
            help="keep the operand above 1: `jnp.arccosh(jnp.maximum(x, 1 + 1e-6))`",
            notes=("the derivative of `arccosh(x)` is `1 / sqrt(x**2 - 1)`",),
        )

    def _has_offset(self) -> bool:
        """Whether the operand is selected by values, or is something and a number above 1."""
        step = maker_of(self.flow, self.step.operands[0])
        if step is None or step.primitive != "add":
            return step is not None and step.primitive == "select_n"
        offsets = [literal(self.flow, operand) for operand in step.operands]
        return any(offset is not None and offset > 1 for offset in offsets)

    def angle(self) -> Violation | None:
        """Return what is wrong with `arctan2`."""
        y, x = self.step.operands
        if any(map(self._is_guarded, (y, x))) or not all(map(self.known.varies, (y, x))):
            return None
        for operand in (y, x):
            low, high = self.known.bounds(operand)
            if low > 0 or high < 0:
                return None
        first, second = maker_of(self.flow, y), maker_of(self.flow, x)
        if first is not None and second is not None:
            names = {first.primitive, second.primitive}
            if names == {"sin", "cos"}:
                return None
            parts = [*_parts(self.flow, y), *_parts(self.flow, x)]
            if {"sin", "cos"} <= {part.primitive for part in parts}:
                return None
        name = self._name("arctan2")
        return Violation(
            f"gradient of `{name}` is NaN where both arguments are 0",
            self.step.path,
            help=f"guard the origin: `jnp.{name}(y, jnp.where((x == 0) & (y == 0), 1.0, x))`",
            notes=("the derivatives are `x / (x**2 + y**2)` and `-y / (x**2 + y**2)`",),
        )

    def _is_guarded(self, number: int) -> bool:
        """Whether a value is kept away from 0: positive, or selected by a comparison."""
        return self.known.is_positive(number) or self._is_selected_before(number)

    def _is_selected_before(self, number: int) -> bool:
        """Whether a value comes from a selection by values, or has a constant added."""
        flow = self.flow
        through = MOVES | PICKS | {"reduce_sum", "square", "integer_pow", "neg", "abs"}
        step = maker_of(flow, number, through)
        for _ in range(4):
            if step is None:
                return False
            if step.primitive == "select_n":
                return self.known.varies(step.operands[0])
            if step.primitive in ("add", "sub") and step.path != self.step.path:
                offsets = [literal(flow, operand) for operand in step.operands]
                if any(offset is not None and 0 < abs(offset) < 1e-2 for offset in offsets):
                    return True
                if step.primitive == "add" and not all(map(self.known.varies, step.operands)):
                    return 0 not in offsets
            if step.primitive not in ("mul", "div", "max", "min", "clamp"):
                return False
            index = 1 if step.primitive == "clamp" else 0
            if step.primitive == "mul" and self.known.varies(step.operands[1]):
                index = 1
            step = maker_of(flow, step.operands[index], through)
        return False

    def _squared(self, number: int) -> int | None:
        """Return what a sum of squares is of."""
        flow = self.flow
        total = maker_of(flow, number)
        if total is None or total.primitive not in ("reduce_sum", "dot_general"):
            return None
        if total.primitive == "dot_general":
            first, second = total.operands
            return first if alike(flow, stripped(flow, first), stripped(flow, second)) else None
        square = maker_of(flow, total.operands[0])
        if square is None:
            return None
        match square.primitive:
            case "square":
                return square.operands[0]
            case "integer_pow" if parameter(square, "y") == 2:
                return square.operands[0]
            case "mul" if alike(flow, *square.operands):
                return square.operands[0]
            case _:
                return None

    def _is_difference(self, number: int) -> bool:
        step = maker_of(self.flow, number)
        return step is not None and step.primitive == "sub"

    def _is_of_chosen_pairs(self, number: int) -> bool:
        """Return whether a difference is between rows that two constant index arrays select.

        Its author chose the pairs, and a point is not paired with itself.
        """
        flow = self.flow
        step = maker_of(flow, number)
        chosen: list[set[int]] = []
        for operand in step.operands if step is not None else ():
            side = maker_of(flow, operand)
            if side is None or side.primitive != "gather":
                return False
            sources = flow.sources(side.operands[1], lambda _: True)
            if not sources or not all(is_known(flow.value(source)) for source in sources):
                return False
            chosen.append({source for source in sources if flow.value(source).shape})
        return len(chosen) == 2 and all(chosen) and chosen[0] != chosen[1]

    def _is_between_all(self, number: int) -> bool:
        """Whether a value has the differences of all pairs of some values."""
        flow = self.flow
        step = maker_of(flow, number)
        if step is None or step.primitive != "sub":
            return False
        sides = [flow.made_by(operand) for operand in step.operands]
        spread = [_spread(flow, operand) for operand in step.operands]
        if None in sides or not alike(flow, spread[0], spread[1]):
            return False
        shapes = [flow.value(operand).shape for operand in step.operands]
        axes = [parameter(side, "broadcast_dimensions") for side in sides if side is not None]
        return shapes[0] != shapes[1] or axes[0] != axes[1]


def _spread(flow: Flow, number: int) -> int:
    """Return the value whose elements are all in a value, in the same order."""
    number = flow.of(number)
    step = flow.made_by(number)
    while step is not None and step.primitive in _SPREADS:
        number = flow.of(step.operands[0])
        step = flow.made_by(number)
    return number


def _parts(flow: Flow, number: int) -> Iterator[Step]:
    """Yield what makes the factors and terms of a value."""
    near = MOVES | PICKS | {"mul", "add", "sub", "neg", "reduce_sum"}
    yield from flow.backwards(number, near, 30)


VIOLATIONS: dict[str, Callable[[Differentiated], Violation | None]] = {
    "sqrt": Differentiated.root,
    "rsqrt": Differentiated.inverse_root,
    "pow": Differentiated.power,
    "cbrt": Differentiated.cube_root,
    "acos": Differentiated.inverse,
    "asin": Differentiated.inverse,
    "acosh": Differentiated.inverse_hyperbolic,
    "atan2": Differentiated.angle,
}
