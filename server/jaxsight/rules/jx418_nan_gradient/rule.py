"""JX418: a gradient that is NaN or infinite at a point that inputs reach."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.program.bounds import (
    MOVES,
    PICKS,
    Known,
    alike,
    is_in_branch,
    literal,
    made,
    readers,
    stripped,
)
from jaxsight.rules.program.view import ELEMENTWISE, Flow, Reading, is_known, parameter
from jaxsight.rules.program.written import called, has_rule, name_of, parsed
from jaxsight.rules.rule import Rule
from jaxsight.wire.program import Step

RULE = Rule(
    "JX418",
    "nan-gradient",
    "Gradient that is NaN or infinite at a point that inputs reach.",
    severity="warning",
)

_WRITTEN: dict[str, frozenset[str]] = {
    "sqrt": frozenset(
        {"sqrt", "norm", "vector_norm", "std", "nanstd", "pow", "power", "float_power"}
    ),
    "rsqrt": frozenset({"rsqrt"}),
    "pow": frozenset({"norm", "vector_norm", "pow", "power", "float_power"}),
    "cbrt": frozenset({"cbrt"}),
    "acos": frozenset({"acos", "arccos"}),
    "asin": frozenset({"asin", "arcsin"}),
    "acosh": frozenset({"acosh", "arccosh"}),
    "atan2": frozenset({"atan2", "arctan2"}),
}
"""By primitive the functions that users write it with."""
_FLAT = frozenset(
    {"stop_gradient", "round", "floor", "ceil", "sign", "argmax", "argmin", "is_finite"}
)  # fmt: skip
_SPREADS = frozenset({"broadcast_in_dim", "reshape", "expand_dims", "squeeze"})
_COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne"})
_NAN = "NaN is the product of the infinite derivative and 0, as of the chain rule through a square"


@dataclass(frozen=True, slots=True)
class Squares:
    """The root of a sum of squares, for the fix."""

    function: str
    """What the user calls: `sqrt` or `norm`."""


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Yield the user's own functions that are differentiated where they have no derivative.

    They are differentiated if the program has the factor of their derivative, or if the module's
    text differentiates the function by an argument that they depend on. Functions with derivative
    rules of their own (`custom_jvp`, `custom_vjp`) are trusted.
    """
    flow, known = reading.flow, Known(reading.flow)
    seen: set[object] = set()
    for step in flow.steps.values():
        look = _LOOKS.get(step.primitive)
        if look is None or step.path in flow.ruled or step.span in seen:
            continue
        if not _is_written(reading.quote(step.path), step.primitive):
            continue
        if not known.varies(step.operands[0]) or has_rule(reading.around(step.path)):
            continue
        if not _is_differentiated(reading, step) or _is_selected(reading, step):
            continue
        if is_in_branch(flow, step):
            continue
        noticed = look(_Look(reading, known, step))
        if noticed is not None:
            seen.add(step.span)
            yield noticed


def _is_written(text: str, primitive: str) -> bool:
    """Whether an expression is itself a call or a power that the primitive is written with."""
    node = parsed(text)
    if isinstance(node, ast.Call):
        return not _WRITTEN[primitive].isdisjoint({name_of(node), *_passed(node)})
    power = isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow)
    return power and primitive in ("sqrt", "pow")


def _passed(call: ast.Call) -> Iterator[str]:
    """Yield the names of functions that are passed on: `norm` of `jax.grad(jnp.linalg.norm)(x)`."""
    for node in ast.walk(call):
        if isinstance(node, ast.Call):
            for argument in node.args:
                if isinstance(argument, ast.Attribute):
                    yield argument.attr


def _is_differentiated(reading: Reading, step: Step) -> bool:
    flow = reading.flow
    if _FACTORS[step.primitive](flow, step):
        users = [
            user
            for user in flow.used_by(step.results[0])
            if user.span != step.span or user.primitive == "stop_gradient"
        ]
        return not users or not all(user.primitive in _FLAT | _COMPARISONS for user in users)
    return bool(reading.differentiated) and any(
        _depends(reading, operand) for operand in step.operands
    )


def _depends(reading: Reading, number: int) -> bool:
    """Whether a value depends on a parameter that the module differentiates by."""
    flow = reading.flow
    sources = flow.sources(
        number, lambda step: step.primitive not in _FLAT and _inexact(flow, step.results[0]), 500
    )
    return any(
        number in flow.inputs
        and _inexact(flow, number)
        and _root(flow.values[number].said) in reading.differentiated
        for number in sources or ()
    )


def _root(name: str) -> str:
    """Return the parameter that an input belongs to: `p` for `p['w'][0]`."""
    return name.split("[")[0].split(".")[0]


def _inexact(flow: Flow, number: int) -> bool:
    return flow.value(number).dtype.startswith(("float", "bfloat"))


def _made_of(flow: Flow, number: int, primitive: str, *others: str) -> Iterator[Step]:
    for user in flow.used_by(number):
        if user.primitive == primitive or user.primitive in others:
            yield user


def _has_root_factor(flow: Flow, step: Step) -> bool:
    """Whether the program divides 0.5 by a root, as the derivative rule of `sqrt` does."""
    return any(
        user.operands[1:] and literal(flow, user.operands[0]) == 0.5
        for user in _made_of(flow, step.results[0], "div")
        if user.span == step.span
    )


def _has_inverse_root_factor(flow: Flow, step: Step) -> bool:
    """Whether the program divides an inverse root by its operand."""
    operand = flow.of(step.operands[0])
    return any(
        flow.of(user.operands[1]) == operand for user in _made_of(flow, step.results[0], "div")
    )


def _has_power_factor(flow: Flow, step: Step) -> bool:
    """Whether the program has the same power with an exponent that is less by 1."""
    for user in _made_of(flow, step.operands[0], "pow"):
        less = made(flow, user.operands[1])
        if user.path != step.path and less is not None and less.primitive == "sub":
            return literal(flow, less.operands[1]) == 1
    return False


def _has_cube_root_factor(flow: Flow, step: Step) -> bool:
    users = _made_of(flow, step.results[0], "integer_pow")
    return any(parameter(user, "y") == -2 for user in users)


def _has_inverse_factor(flow: Flow, step: Step) -> bool:
    """Whether the program has the inverse root of something of the operand, at the same place."""
    near = {"one_minus_square", "square", "mul", "integer_pow", "sub", "add", "neg"}
    for _, user in readers(flow, step.operands[0], lambda each: each.primitive in near, 20):
        if user.primitive in ("rsqrt", "sqrt") and user.span == step.span:
            return user.path != step.path
    return False


def _has_angle_factor(flow: Flow, step: Step) -> bool:
    """Whether the program divides by the sum of the squares of both operands, at that place."""
    near = {"square", "mul", "integer_pow", "add", "neg"}
    return any(
        user.primitive == "div" and user.span == step.span
        for operand in step.operands
        for _, user in readers(flow, operand, lambda each: each.primitive in near, 20)
    )


_FACTORS: dict[str, Callable[[Flow, Step], bool]] = {
    "sqrt": _has_root_factor,
    "rsqrt": _has_inverse_root_factor,
    "pow": _has_power_factor,
    "cbrt": _has_cube_root_factor,
    "acos": _has_inverse_factor,
    "asin": _has_inverse_factor,
    "acosh": _has_inverse_factor,
    "atan2": _has_angle_factor,
}
"""By primitive whether the program has the factor of its derivative, by JAX's rules in
`jax/_src/lax/lax.py`.
"""


def _is_selected(reading: Reading, step: Step) -> bool:
    """Whether the user selects the result by its operand: that is JX405's to report."""
    flow = reading.flow
    own = flow.sources(step.operands[0], lambda each: bool(each.operands), 200) or set()
    near = (ELEMENTWISE | MOVES) - _COMPARISONS - {"select_n"}
    for read, user in readers(flow, step.results[0], lambda each: each.primitive in near, 12):
        if user.primitive != "select_n" or not reading.wrote(user.path, "where", "select"):
            continue
        if flow.of(read) == flow.of(user.operands[0]) or user.backward:
            continue
        compared = flow.sources(user.operands[0], lambda each: bool(each.operands), 200) or set()
        if compared & own:
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Look:
    """One differentiated equation of the user's."""

    reading: Reading
    known: Known
    step: Step

    @property
    def flow(self) -> Flow:
        return self.reading.flow

    def _name(self, default: str) -> str:
        """Return the name of the function that the user calls here, or passes on."""
        node = parsed(self.reading.quote(self.step.path))
        if not isinstance(node, ast.Call):
            return default
        names = [name_of(node), *_passed(node)]
        return next((n for n in names if n in _WRITTEN[self.step.primitive]), default)

    def root(self) -> Noticed | None:
        """Return what is wrong with a square root, a norm or a standard deviation."""
        operand = self.step.operands[0]
        if self._is_guarded(operand):
            return None
        name = self._name("sqrt")
        if name in ("std", "nanstd"):
            return Noticed(
                f"gradient of `{name}` is NaN where all values are equal",
                self.step.path,
                help="add a small number to the variance: `jnp.sqrt(jnp.var(x) + 1e-12)`",
                notes=("the derivative of a root is infinite at 0", _NAN),
            )
        base = self._squared(operand)
        if base is None:
            return self._plain(name)
        if self._is_between_all(base):
            return Noticed(
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
        return Noticed(
            f"gradient of `{name}` is NaN where "
            + ("the difference is 0" if difference else "all elements are 0"),
            self.step.path,
            help=_OF_SQUARES,
            notes=("the derivative of a root is infinite at 0", _NAN),
            data=Squares(name),
        )

    def _plain(self, name: str) -> Noticed | None:
        if self.known.bounds(self.step.operands[0])[1] <= 0:
            return None
        return Noticed(
            f"gradient of `{'sqrt' if 'norm' in name else name}` is infinite at 0",
            self.step.path,
            help="keep the operand above 0: `jnp.sqrt(x + 1e-12)` or "
            "`jnp.sqrt(jnp.maximum(x, 1e-12))`",
            notes=("the derivative of `sqrt(x)` is `0.5 / sqrt(x)`",),
        )

    def inverse_root(self) -> Noticed | None:
        """Return what is wrong with an inverse square root."""
        if self._is_guarded(self.step.operands[0]):
            return None
        return Noticed(
            "`rsqrt` is infinite at 0, and its gradient NaN or infinite",
            self.step.path,
            help="keep the operand above 0: `jax.lax.rsqrt(x + 1e-6)`",
            notes=("the derivative of `rsqrt(x)` is `-0.5 * rsqrt(x) / x`",),
        )

    def power(self) -> Noticed | None:
        """Return what is wrong with a power between 0 and 1."""
        exponent = literal(self.flow, self.step.operands[1])
        if exponent is None or not 0 < exponent < 1 or self._is_guarded(self.step.operands[0]):
            return None
        if called(self.reading.quote(self.step.path)) == "norm":
            return Noticed(
                "gradient of `norm` is NaN where all elements are 0",
                self.step.path,
                help="add a small number to the sum before its root",
                notes=("the derivative of a root is infinite at 0", _NAN),
            )
        return Noticed(
            f"gradient of `x ** {exponent:.3g}` is infinite where `x` is 0",
            self.step.path,
            help="keep the operand above 0: `jnp.maximum(x, 1e-12)`",
            notes=(f"the derivative is `{exponent:.3g} * x ** {exponent - 1:.3g}`",),
        )

    def cube_root(self) -> Noticed | None:
        """Return what is wrong with a cube root."""
        if self._is_guarded(self.step.operands[0]):
            return None
        return Noticed(
            "gradient of `cbrt` is infinite at 0",
            self.step.path,
            help="keep the operand away from 0",
            notes=("the derivative of `cbrt(x)` is `cbrt(x)**-2 / 3`",),
        )

    def inverse(self) -> Noticed | None:
        """Return what is wrong with `arccos` or `arcsin`."""
        low, high = self.known.bounds(self.step.operands[0])
        if (low > -1 and high < 1) or self._is_selected_before(self.step.operands[0]):
            return None
        name = self._name(f"arc{self.step.primitive[1:]}")
        clip = made(self.flow, self.step.operands[0])
        clipped = clip is not None and clip.primitive in ("clamp", "min", "max")
        minus = "-" if "cos" in name else ""
        notes: tuple[str, ...] = (f"the derivative of `{name}(x)` is `{minus}1 / sqrt(1 - x**2)`",)
        if clipped:
            notes += (
                "outside of its bounds the derivative of `clip` is 0: 0 times infinity is NaN",
            )
        return Noticed(
            f"gradient of `{name}` is NaN where `clip` takes effect"
            if clipped
            else f"gradient of `{name}` is infinite where its argument is -1 or 1",
            self.step.path,
            help=f"clip inside of the bounds: `jnp.{name}(jnp.clip(x, -1 + 1e-6, 1 - 1e-6))`",
            notes=notes,
        )

    def inverse_hyperbolic(self) -> Noticed | None:
        """Return what is wrong with `arccosh`."""
        if self.known.bounds(self.step.operands[0])[0] > 1:
            return None
        if self._has_offset():
            return None
        return Noticed(
            "gradient of `arccosh` is infinite where its argument is 1",
            self.step.path,
            help="keep the operand above 1: `jnp.arccosh(jnp.maximum(x, 1 + 1e-6))`",
            notes=("the derivative of `arccosh(x)` is `1 / sqrt(x**2 - 1)`",),
        )

    def _has_offset(self) -> bool:
        """Whether the operand is selected by values, or is something and a number above 1."""
        step = made(self.flow, self.step.operands[0])
        if step is None or step.primitive != "add":
            return step is not None and step.primitive == "select_n"
        offsets = [literal(self.flow, each) for each in step.operands]
        return any(offset is not None and offset > 1 for offset in offsets)

    def angle(self) -> Noticed | None:
        """Return what is wrong with `arctan2`."""
        y, x = self.step.operands
        if any(map(self._is_guarded, (y, x))) or not all(map(self.known.varies, (y, x))):
            return None
        for operand in (y, x):
            low, high = self.known.bounds(operand)
            if low > 0 or high < 0:
                return None
        first, second = made(self.flow, y), made(self.flow, x)
        if first is not None and second is not None:
            names = {first.primitive, second.primitive}
            if names == {"sin", "cos"}:
                return None
            parts = [*_parts(self.flow, y), *_parts(self.flow, x)]
            if {"sin", "cos"} <= {each.primitive for each in parts}:
                return None
        name = self._name("arctan2")
        return Noticed(
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
        step = made(flow, number, through)
        for _ in range(4):
            if step is None:
                return False
            if step.primitive == "select_n":
                return self.known.varies(step.operands[0])
            if step.primitive in ("add", "sub") and step.path != self.step.path:
                offsets = [literal(flow, each) for each in step.operands]
                if any(offset is not None and 0 < abs(offset) < 1e-2 for offset in offsets):
                    return True
                if step.primitive == "add" and not all(map(self.known.varies, step.operands)):
                    return 0 not in offsets
            if step.primitive not in ("mul", "div", "max", "min", "clamp"):
                return False
            index = 1 if step.primitive == "clamp" else 0
            if step.primitive == "mul" and self.known.varies(step.operands[1]):
                index = 1
            step = made(flow, step.operands[index], through)
        return False

    def _squared(self, number: int) -> int | None:
        """Return what a sum of squares is of."""
        flow = self.flow
        total = made(flow, number)
        if total is None or total.primitive not in ("reduce_sum", "dot_general"):
            return None
        if total.primitive == "dot_general":
            first, second = total.operands
            return first if alike(flow, stripped(flow, first), stripped(flow, second)) else None
        square = made(flow, total.operands[0])
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
        step = made(self.flow, number)
        return step is not None and step.primitive == "sub"

    def _is_of_chosen_pairs(self, number: int) -> bool:
        """Return whether a difference is between rows that two constant index arrays select.

        Its author chose the pairs, and a point is not paired with itself.
        """
        flow = self.flow
        step = made(flow, number)
        chosen: list[set[int]] = []
        for operand in step.operands if step is not None else ():
            side = made(flow, operand)
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
        step = made(flow, number)
        if step is None or step.primitive != "sub":
            return False
        sides = [flow.made_by(each) for each in step.operands]
        kept = [_spread(flow, each) for each in step.operands]
        if None in sides or not alike(flow, kept[0], kept[1]):
            return False
        shapes = [flow.value(each).shape for each in step.operands]
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
    yield from flow.above(number, lambda step: step.primitive in near, 30)


_OF_SQUARES = (
    "add a small number under the root: `jnp.sqrt(jnp.sum(x**2) + 1e-12)`, or guard it with two "
    "`where`"
)
_LOOKS: dict[str, Callable[[_Look], Noticed | None]] = {
    "sqrt": _Look.root,
    "rsqrt": _Look.inverse_root,
    "pow": _Look.power,
    "cbrt": _Look.cube_root,
    "acos": _Look.inverse,
    "asin": _Look.inverse,
    "acosh": _Look.inverse_hyperbolic,
    "atan2": _Look.angle,
}
