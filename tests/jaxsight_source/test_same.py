"""Jaxprs that are one program compare as the same; others say where they part."""

from __future__ import annotations

import functools

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight import same_jaxpr

X = jax.ShapeDtypeStruct((3,), jnp.float32)


def compared(left, right, *args):
    return same_jaxpr(jax.make_jaxpr(left)(*args), jax.make_jaxpr(right)(*args))


def test_names_dead_code_and_names_of_inner_jits_do_not_count():
    def left(x):
        jnp.cos(x)
        return jax.jit(lambda y: y * 2)(x)

    assert compared(left, lambda z: jax.jit(lambda w: w * 2)(z), X) is None


def test_a_scalar_may_be_held_in_any_way():
    assert compared(lambda x: lax.mul(x, 2.0), lambda x: lax.mul(x, np.float32(2)), X) is None


def test_captured_values_may_be_listed_in_any_order():
    def loop(first, second):
        return lambda x, a, b: lax.fori_loop(
            0, x.shape[0], lambda i, c: c * (b - a) if first else c * lax.sub(b, a), x + second
        )

    assert compared(loop(True, 1), loop(False, 1), X, 1.0, 2.0) is None


def test_another_primitive_is_found_where_it_is():
    def scanned(function):
        return lambda x: lax.scan(lambda c, y: (function(c) * y, c), 1.0, x)

    found = compared(scanned(jnp.sin), scanned(jnp.cos), X)
    assert found is not None
    assert (found.path, found.part) == ("0/body/0", "primitive")
    assert (found.left, found.right) == ("sin", "cos")


def test_another_parameter_names_both_values():
    found = compared(lambda x: lax.cumsum(x), lambda x: lax.cumsum(x, reverse=True), X)
    assert found is not None
    assert found.part == "reverse of cumsum"
    assert "False" in found.left
    assert "True" in found.right


def test_minus_zero_is_not_zero():
    assert compared(lambda x: lax.mul(x, 0.0), lambda x: lax.mul(x, -0.0), X) is not None


def test_weak_types_count():
    found = compared(lambda x: 1.0, lambda x: np.float32(1), X)
    assert found is not None
    assert "weak" in found.left


def test_the_order_of_effects_counts():
    def told(*texts):
        def function(x):
            for text in texts:
                jax.debug.print(text)
            return x

        return function

    assert compared(told("a", "b"), told("b", "a"), X) is not None


def test_rules_of_custom_derivatives_count():
    def squared(factor):
        @jax.custom_jvp
        def square(x):
            return x * x

        @square.defjvp
        def rule(primals, tangents):
            return square(*primals), factor * primals[0] * tangents[0]

        return square

    assert compared(squared(2.0), squared(2.0), X) is None
    found = compared(squared(2.0), squared(3.0), X)
    assert found is not None
    assert "jvp" in found.path


def test_constants_count_by_their_bits():
    def plus(value):
        array = np.full(3, value, np.float32)
        return lambda x: x + array

    assert compared(plus(1.0), plus(1.0), X) is None
    assert compared(plus(1.0), plus(2.0), X) is not None


def called_back(function):
    return lambda x: jax.pure_callback(function, X, x)


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor

    def times(self, x):
        return x * self.factor


class Slotted:
    __slots__ = ("factor", "later")

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor


def added(number):
    return lambda x, n=number: x + n


def captured(held):
    return lambda x: x + (0 if held is None else 1)


@pytest.mark.parametrize(
    "made",
    [
        Scaled,
        Slotted,
        lambda n: Scaled(n).times,
        lambda n: functools.partial(np.add, n),
        lambda n: functools.partial(Scaled(n), out=None),
        added,
        lambda n: captured(jax.tree.structure({"a": Scaled(1), f"b{n}": 0})),
        lambda n: captured([Scaled(n), {n: n}]),
    ],
)
def test_objects_that_say_nothing_of_equality_are_compared_by_what_is_in_them(made):
    assert compared(called_back(made(1)), called_back(made(1)), X) is None
    assert compared(called_back(made(1)), called_back(made(2)), X) is not None


def test_marks_are_known_by_their_identity():
    class Mark:
        pass

    for kind in (object, Mark, lambda: jax.extend.core.Primitive("p")):
        mark = kind()
        assert compared(called_back(captured(mark)), called_back(captured(mark)), X) is None
        other = called_back(captured(kind()))
        assert compared(called_back(captured(mark)), other, X) is not None


def test_objects_that_hold_each_other_are_compared():
    def ring(factor):
        one, other = Scaled(factor), Scaled(factor)
        one.next, other.next = other, one
        return one

    assert compared(called_back(ring(1)), called_back(ring(1)), X) is None
    assert compared(called_back(ring(1)), called_back(ring(2)), X) is not None


def test_constants_that_a_jaxpr_has_no_values_for_are_compared_by_what_is_done_with_them():
    """Primitives of other packages keep such jaxprs, and give the values as operands."""
    kept = jax.extend.core.Primitive("kept")
    kept.multiple_results = True
    kept.def_abstract_eval(lambda *avals, **_: avals[:1])

    def bound(factor):
        def f(x):
            inside = jax.make_jaxpr(lambda y: y * x * factor)(1.0)
            return kept.bind(x, inside=getattr(inside, "jaxpr", inside))

        return f

    assert compared(bound(2), bound(2), X) is None
    assert compared(bound(2), bound(3), X) is not None


def test_values_that_a_loop_captures_and_does_nothing_with_do_not_count():
    def loop(captured):
        def body(carry, x):
            if captured is not None:
                jnp.sin(captured)  # so that it is captured, and dropped
            return carry + x, None

        return body

    def with_capture(x):
        return lax.scan(loop(jnp.cos(x)), 0.0, x)[0]

    def without(x):
        return lax.scan(loop(None), 0.0, x)[0]

    jaxpr = jax.make_jaxpr(with_capture)(X)
    assert any(e.primitive.name == "cos" for e in jaxpr.eqns)
    assert compared(with_capture, without, X) is None
