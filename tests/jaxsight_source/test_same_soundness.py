"""`same_jaxpr` finds differences that JAX's own equality, or a trace for one pattern, hides."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import pytest
from jax.custom_derivatives import SymbolicZero

from jaxsight import same_jaxpr
from jaxsight_source.jaxprs.same.difference import Difference

X = jax.ShapeDtypeStruct((3,), jnp.float32)

Function = Callable[..., Any]


def compared(left: Function, right: Function, *args: Any) -> Difference | None:
    return same_jaxpr(jax.make_jaxpr(left)(*args), jax.make_jaxpr(right)(*args))


OWN = jax.extend.core.Primitive("own")
OWN.def_abstract_eval(lambda aval, **_: aval)


@dataclasses.dataclass(frozen=True)
class Half:
    """Equal to others by one field alone."""

    shown: int
    hidden: int = dataclasses.field(compare=False)

    def __call__(self, x: Any) -> Any:
        return x * self.hidden


class Alike:
    """Equal to every other."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Alike)

    def __hash__(self) -> int:
        return 0

    def __call__(self, x: Any) -> Any:
        return x * self.factor


@pytest.mark.parametrize("name", ["linear", "debug", "debug_info", "out_trees", "ft_in", "name"])
def test_parameters_of_other_peoples_primitives_count(name: str) -> None:
    def bound(value: Any) -> Function:
        return lambda x: OWN.bind(x, **{name: value})

    assert compared(bound("a"), bound("a"), X) is None
    assert compared(bound("a"), bound("b"), X) is not None


def test_modules_of_equinox_are_compared_by_their_fields() -> None:
    """lineax passes `RESULTS` to its primitives: an item without a value, made by each trace."""
    equinox = pytest.importorskip("equinox")

    class Item(equinox.Module):
        value: int | None
        kind: Any = equinox.field(static=True)

        def __eq__(self, other: object) -> bool:
            return self is other

        def __hash__(self) -> int:
            return id(self)

    def bound(item: Item) -> Function:
        return lambda x: OWN.bind(x, item=item)

    assert compared(bound(Item(None, "a")), bound(Item(None, "a")), X) is None
    assert compared(bound(Item(None, "a")), bound(Item(None, "b")), X) is not None
    assert compared(bound(Item(None, "a")), bound(Item(1, "a")), X) is not None


def test_modules_of_equinox_without_fields_are_the_same_whenever_a_tree_is_rebuilt() -> None:
    """`diffrax` marks stages that are not used by such a module, which `while_loop` rebuilds."""
    equinox = pytest.importorskip("equinox")

    class Unused(equinox.Module):
        pass

    class Other(equinox.Module):
        pass

    def bound(mark: Any) -> Function:
        return lambda x: OWN.bind(x, marks=(mark,))

    assert compared(bound(Unused()), bound(Unused()), X) is None
    assert compared(bound(Unused()), bound(Other()), X) is not None
    assert compared(bound(object()), bound(object()), X) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (frozenset({0.0}), frozenset({-0.0})),
        (frozenset({1}), frozenset({True})),
        (frozenset({(1, 2)}), frozenset({(True, 2)})),
        ({1: "a"}, {True: "a"}),
        ({0.0: "a"}, {-0.0: "a"}),
        ({"a": 0.0}, {"a": -0.0}),
        ((0.0,), (-0.0,)),
        ((1,), (1.0,)),
        ((1,), [1]),
        (Half(1, 2), Half(1, 3)),
        (frozenset({Half(1, 2)}), frozenset({Half(1, 3)})),
        ({Half(1, 2): 0}, {Half(1, 3): 0}),
        (Alike(1), Alike(2)),
        (jax.tree.structure({"a": Alike}), jax.tree.structure({"b": Alike})),
    ],
    ids=lambda value: "Alike" if isinstance(value, Alike) else repr(value),
)
def test_parameters_that_are_equal_and_not_the_same_are_different(one: Any, other: Any) -> None:
    def bound(value: Any) -> Function:
        held = functools.partial(print, value)  # parameters must be hashable
        return lambda x: OWN.bind(x, given=held)

    assert compared(bound(one), bound(one), X) is None
    assert compared(bound(one), bound(other), X) is not None


@pytest.mark.parametrize("kind", [lambda n: Half(1, n), Alike])
def test_callbacks_that_say_they_are_equal_are_compared_by_what_is_in_them(kind: Function) -> None:
    def called(function: Function) -> Function:
        return lambda x: jax.pure_callback(function, X, x)

    assert compared(called(kind(2)), called(kind(2)), X) is None
    assert compared(called(kind(2)), called(kind(3)), X) is not None


def with_rule(factor: float, where: Callable[[list[bool]], bool], count: int = 2) -> Function:
    """A custom_jvp of `count` values whose rule differs by `factor` for some symbolic zeros."""

    @jax.custom_jvp
    def total(*xs: Any) -> Any:
        return sum(xs)

    def rule(primals: Any, tangents: Any) -> Any:
        zeros = [type(t) is SymbolicZero for t in tangents]
        scale = factor if where(zeros) else 1.0
        present = [t * scale for t, zero in zip(tangents, zeros, strict=True) if not zero]
        return sum(primals), sum(present)

    total.defjvp(rule, symbolic_zeros=True)
    return lambda x: total(*[x] * count)


def test_rules_are_compared_for_every_pattern_of_symbolic_zeros() -> None:
    def last(zeros: list[bool]) -> bool:
        return zeros[-1]

    assert compared(with_rule(2.0, last), with_rule(2.0, last), X) is None
    assert compared(with_rule(2.0, last), with_rule(3.0, last), X) is not None


def test_rules_of_more_patterns_than_are_asked_are_the_same_functions_or_different() -> None:
    def two_of_five(zeros: list[bool]) -> bool:
        return zeros == [True, False, True, False, False]

    one = with_rule(2.0, two_of_five, 5)
    assert compared(one, one, X) is None
    assert compared(one, with_rule(2.0, two_of_five, 5), X) is None
    assert compared(one, with_rule(3.0, two_of_five, 5), X) is not None


@pytest.mark.parametrize("asks", ["perturbed", "cotangents"])
def test_vjp_rules_that_ask_for_symbolic_zeros_are_asked_for_them(asks: str) -> None:
    def made(factor: float) -> Function:
        @jax.custom_vjp
        def product(x: Any, y: Any) -> Any:
            return x * y, x + y

        def forward(x: Any, y: Any) -> Any:
            asked = asks == "perturbed" and not y.perturbed
            return (x.value * y.value, x.value + y.value), (y.value * (factor if asked else 1.0),)

        def backward(residuals: Any, cotangents: Any) -> Any:
            zero = asks == "cotangents" and type(cotangents[1]) is SymbolicZero
            return residuals[0] * (factor if zero else 1.0), None

        product.defvjp(forward, backward, symbolic_zeros=True)
        return lambda x, y: product(x, y)[0]

    assert compared(made(2.0), made(2.0), X, X) is None
    assert compared(made(2.0), made(3.0), X, X) is not None


def nested(factor: float, orders: int) -> Function:
    """A function whose derivative of that order has `factor` in it."""

    def of_order(order: int) -> Function:
        @jax.custom_jvp
        def f(x: Any) -> Any:
            return jnp.sin(x) if order else x * factor

        if order:

            def rule(primals: Any, tangents: Any) -> Any:
                return f(*primals), of_order(order - 1)(*primals) * tangents[0]

            f.defjvp(rule)
        else:
            f.defjvp(lambda primals, tangents: (f(*primals), factor * tangents[0]))
        return f

    return of_order(orders)


@pytest.mark.parametrize("orders", [1, 3, 4, 6])
def test_rules_of_any_order_count(orders: int) -> None:
    function = nested(2.0, orders)
    assert compared(function, function, X) is None
    assert compared(function, nested(3.0, orders), X) is not None


def test_rules_up_to_an_order_are_compared_where_that_is_asked() -> None:
    left, right = (jax.make_jaxpr(nested(factor, 5))(X) for factor in (2.0, 3.0))
    assert same_jaxpr(left, right, orders=3) is None


def closing_over(factor: float, other: bool = False) -> Function:
    def outer(x: Any, y: Any) -> Any:
        held = y if other else x

        @jax.custom_jvp
        def scaled(z: Any) -> Any:
            return z * x

        scaled.defjvp(lambda primals, tangents: (scaled(*primals), tangents[0] * held * factor))
        return scaled(y)

    return outer


def test_rules_that_hold_values_around_them_are_compared() -> None:
    assert compared(closing_over(2.0), closing_over(2.0), X, X) is None
    assert compared(closing_over(2.0), closing_over(3.0), X, X) is not None
    swapped = closing_over(2.0, other=True)
    assert compared(closing_over(2.0), swapped, X, X) is not None
    assert compared(swapped, closing_over(2.0, other=True), X, X) is None


@pytest.mark.parametrize("kind", [jax.custom_jvp, jax.custom_vjp])
def test_values_that_a_function_with_a_rule_captures_and_drops_do_not_count(kind: Any) -> None:
    def made(drops: bool) -> Function:
        def outer(x: Any) -> Any:
            unused = jnp.sin(x)

            @kind
            def doubled(y: Any) -> Any:
                if drops:
                    jnp.cos(unused)
                return y * 2

            if kind is jax.custom_jvp:
                doubled.defjvp(lambda primals, tangents: (doubled(*primals), tangents[0] * 2))
            else:
                doubled.defvjp(lambda y: (doubled(y), None), lambda _, ct: (ct * 2,))
            return doubled(x)

        return outer

    jaxpr = jax.make_jaxpr(made(True))(X)
    assert any(equation.primitive.name == "sin" for equation in jaxpr.eqns)
    assert compared(made(True), made(False), X) is None
