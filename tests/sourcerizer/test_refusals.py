"""What is told to calls is kept, or refused with one clear message: never text that is not the same program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from jax.custom_derivatives import SymbolicZero
from jax.experimental.layout import Format, Layout

from jaxsight import same_jaxpr, sourcerize
from jaxsight.sourcerizer.api import Written, load
from jaxsight.sourcerizer.writer import Unsourceable
from tests.sourcerizer.gate import check_format

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

RoundTrip = Callable[..., Written]


def is_zero(tangent: Any) -> bool:
    return type(tangent) is SymbolicZero


@jax.custom_jvp
def times(x: Any, y: Any) -> Any:
    return x * y, x


def times_rule(primals: Any, tangents: Any) -> Any:
    x, y = primals
    tx, ty = tangents
    if is_zero(tx) and is_zero(ty):
        dot = SymbolicZero.from_primal_value(x)
    elif is_zero(tx):
        dot = x * ty * 3
    else:
        dot = tx * y * 2 if is_zero(ty) else tx * y + x * ty
    return times(x, y), (dot, tx)


times.defjvp(times_rule, symbolic_zeros=True)


def test_rule_that_asks_for_symbolic_zeros_is_written_for_every_pattern(
    round_trip: RoundTrip,
) -> None:
    def both(x: Any, y: Any) -> Any:
        out, kept = times(x, y)
        return out.sum() + kept.sum()

    written = round_trip(both, X, X + 2)
    assert "symbolic_zeros=True" in written.text
    made = load(written)
    for argnums in (0, 1, (0, 1)):
        expected = jax.make_jaxpr(jax.grad(both, argnums))(X, X + 2)
        found = jax.make_jaxpr(jax.grad(made, argnums))(X, X + 2)
        assert same_jaxpr(expected, found) is None
        check_format(written.text)


def test_rules_that_differ_in_one_pattern_alone_are_not_the_same() -> None:
    def made(factor: float) -> Any:
        @jax.custom_jvp
        def f(x: Any, y: Any) -> Any:
            return x * y

        def rule(primals: Any, tangents: Any) -> Any:
            dot = tangents[0] if not is_zero(tangents[0]) else tangents[1] * factor
            return f(*primals), dot

        f.defjvp(rule, symbolic_zeros=True)
        return jax.make_jaxpr(f)(X, X)

    assert same_jaxpr(made(2.0), made(2.0)) is None
    assert same_jaxpr(made(2.0), made(3.0)) is not None


def test_function_whose_rule_asks_for_many_symbolic_zeros_is_passed_in() -> None:
    @jax.custom_jvp
    def f(*xs: Any) -> Any:
        return sum(xs)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]), symbolic_zeros=True)

    def five(x: Any) -> Any:
        return f(x, x, x, x, x)

    source = sourcerize(five)(X)
    assert set(source.passed) == {"f"}
    assert "which of 5 tangents are zero" in source
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    made = functools.partial(namespace["five"], **source.passed)
    assert same_jaxpr(jax.make_jaxpr(five)(X), jax.make_jaxpr(made)(X)) is None


def test_function_whose_vjp_rules_ask_for_symbolic_zeros_is_passed_in() -> None:
    @jax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def backward(kept: Any, ct: Any) -> Any:
        return (None, None) if is_zero(ct) else (ct * kept[1] * 3, ct * kept[0])

    f.defvjp(lambda x, y: (f(x.value, y.value), (x.value, y.value)), backward, symbolic_zeros=True)

    def loss(x: Any) -> Any:
        return f(x, x + 1).sum()

    source = sourcerize(loss)(X)
    assert set(source.passed) == {"f"}
    assert "ask for symbolic zeros" in source
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    made = functools.partial(namespace["loss"], **source.passed)
    assert same_jaxpr(jax.make_jaxpr(loss)(X), jax.make_jaxpr(made)(X)) is None
    np.testing.assert_array_equal(jax.grad(loss)(X), jax.grad(made)(X))


doubled = jax.jit(lambda x: jax.lax.sin(x) * 2)


@pytest.mark.parametrize("kind", [jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit])
@pytest.mark.parametrize("of_devices", [True, False])
def test_mesh_that_a_part_is_computed_under_is_said(
    round_trip: RoundTrip, kind: Any, of_devices: bool
) -> None:
    mesh: Any = jax.sharding.AbstractMesh((1,), ("a",), axis_types=(kind,))
    if of_devices:
        devices = np.array(jax.devices()[:1])
        mesh = jax.sharding.Mesh(devices, ("a",), axis_types=(kind,)).abstract_mesh

    def under(x: Any) -> Any:
        before = x + 1
        with jax.sharding.use_abstract_mesh(mesh):
            return doubled(before) + 1

    written = round_trip(under, X, run=False)
    assert "with jax.sharding.use_abstract_mesh(" in written.text
    check_format(written.text)


def test_mesh_of_devices_that_are_not_here_is_refused() -> None:
    device = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("a",)).abstract_mesh
    if getattr(device, "abstract_device", None) is None:
        return  # meshes of this JAX do not know their devices' kind
    sizes = (4096,)
    mesh = jax.sharding.AbstractMesh(
        sizes, ("a",), axis_types=device.axis_types, abstract_device=device.abstract_device
    )

    def under(x: Any) -> Any:
        with jax.sharding.use_abstract_mesh(mesh):
            return jax.lax.sin(x)

    with pytest.raises(Unsourceable, match="its devices are not here"):
        sourcerize(under)(X)


def test_layouts_of_arguments_and_results_are_told_again(round_trip: RoundTrip) -> None:
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    turned = Format(Layout((1, 0)), here)
    told = jax.jit(
        lambda x, y: (x + y, x),
        in_shardings=(turned, Format(Layout.AUTO)),
        out_shardings=(None, turned),
    )
    written = round_trip(lambda x: told(x, x), X, run=False)
    assert "jax.experimental.layout.Layout((1, 0))" in written.text
    check_format(written.text)


def test_calls_that_are_to_be_inlined_are_inlined_or_say_so(round_trip: RoundTrip) -> None:
    inner = jax.jit(lambda x: jax.lax.sin(x) * 2, inline=True)
    round_trip(lambda x: inner(x) + 1, X)
    round_trip(jax.grad(lambda x: inner(x).sum()), X)
    round_trip(inner, X)
