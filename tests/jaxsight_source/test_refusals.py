"""What is told to calls is kept, or refused with one clear message: never text that is not the same
program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core
import numpy as np
import pytest
from jax.custom_derivatives import SymbolicZero
from jax.experimental.layout import Format, Layout

from jaxsight import same_jaxpr, sourcerize
from jaxsight_source.errors import Unsourceable
from jaxsight_source.written import Written, load
from tests.jaxsight_source.gate import check_format

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)

RoundTrip = Callable[..., Written]


def is_zero(tangent: Any) -> bool:
    return type(tangent) is SymbolicZero


def test_integers_are_no_pattern_of_zeros(round_trip: RoundTrip) -> None:
    @jax.custom_jvp
    def shifted(x: Any, *numbers: Any) -> Any:
        return x + sum(numbers)

    def rule(primals: Any, tangents: Any) -> Any:
        assert all(map(is_zero, tangents[1:]))
        return shifted(*primals), tangents[0] * 2

    shifted.defjvp(rule, symbolic_zeros=True)

    def loss(x: Any) -> Any:
        return shifted(x, 0, 1, 2, 3, 4).sum()

    written = round_trip(loss, X)
    assert "x_dot, _, _, _, _, _ = tangents" in written.text
    check_format(written.text)
    expected, found = (jax.make_jaxpr(jax.grad(f))(X) for f in (loss, load(written)))
    assert same_jaxpr(expected, found) is None


def test_comparing_leaves_what_rules_remember_as_it_was() -> None:
    """A rule that refuses to be asked by one pattern of zeros may have been asked by another, for a
    gradient that JAX keeps.
    """

    @jax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def forward(x: Any, y: Any) -> Any:
        if x.perturbed and y.perturbed:
            raise TypeError("both")
        return x.value * y.value, (y.value,)

    f.defvjp(forward, lambda kept, ct: (ct * kept[0], None), symbolic_zeros=True)
    inside = jax.jit(lambda x, y: f(x, y) * 2)

    def loss(x: Any, y: Any) -> Any:
        return inside(x, y).sum()

    def gradient(function: Any) -> Any:
        return jax.make_jaxpr(jax.grad(lambda x, y: function(x, y)[0]))(X, X + 2)

    program = jax.make_jaxpr(loss)(X, X + 2)
    evaluated = jax.extend.core.jaxpr_as_fun(program)
    before = gradient(evaluated)
    jax.clear_caches()
    assert same_jaxpr(program, jax.make_jaxpr(loss)(X, X + 2)) is None
    assert same_jaxpr(before, gradient(evaluated)) is None


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


def test_several_tangents_that_may_be_zero_leave_the_rule_to_the_caller() -> None:
    @jax.custom_jvp
    def f(*xs: Any) -> Any:
        return sum(xs)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]), symbolic_zeros=True)

    def five(x: Any) -> Any:
        return f(x, x, x, x, x)

    source = sourcerize(five)(X)
    assert set(source.passed) == {"f_rules"}
    assert "@f_rules\n    def f(" in source
    assert "asks for symbolic zeros of several tangents" in " ".join(source.split())
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    made = functools.partial(namespace["five"], **source.passed)
    assert same_jaxpr(jax.make_jaxpr(five)(X), jax.make_jaxpr(made)(X)) is None
    tangent = jax.jvp(made, (X,), (X,))[1]
    np.testing.assert_array_equal(tangent, X)


def test_vjp_rules_for_symbolic_zeros_are_left_to_the_caller_and_the_function_is_written() -> None:
    @jax.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def backward(kept: Any, ct: Any) -> Any:
        return (None, None) if is_zero(ct) else (ct * kept[1] * 3, ct * kept[0])

    f.defvjp(lambda x, y: (f(x.value, y.value), (x.value, y.value)), backward, symbolic_zeros=True)

    def loss(x: Any) -> Any:
        return f(x, x + 1).sum()

    source = sourcerize(loss)(X)
    assert set(source.passed) == {"f_rules"}
    assert "@f_rules\n    def f(" in source
    assert "ask for symbolic zeros" in " ".join(source.split())
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    made = functools.partial(namespace["loss"], **source.passed)
    assert same_jaxpr(jax.make_jaxpr(loss)(X), jax.make_jaxpr(made)(X)) is None
    np.testing.assert_array_equal(jax.grad(loss)(X), jax.grad(made)(X))


def test_function_that_captures_a_value_is_written_with_rules_of_the_caller(
    round_trip: RoundTrip,
) -> None:
    def scaled(x: Any, scale: Any) -> Any:
        factor = scale * 2

        @jax.custom_vjp
        def f(y: Any, z: Any) -> Any:
            return y * z * factor

        def forward(y: Any, z: Any) -> Any:
            return y.value + z.value, (z.value,)

        f.defvjp(forward, lambda kept, ct: (ct * kept[0], None), symbolic_zeros=True)
        return (f(x + 1, x) + f(x, x)).sum()

    scale = np.float32(3)
    written = round_trip(scaled, X, scale, run=False)
    given = {placeholder.name: placeholder.value for placeholder in written.placeholders}
    assert {name.rstrip("_1") for name in given} == {"f_rules"}
    made = functools.partial(load(written), **given)
    np.testing.assert_array_equal(jax.grad(made)(X, scale), jax.grad(scaled)(X, scale))


STRUCTURED = jax.extend.core.Primitive("structured")
STRUCTURED.def_abstract_eval(lambda aval, *, tree: aval)


def test_structure_of_standard_containers_is_written(round_trip: RoundTrip) -> None:
    tree = jax.tree.structure(({"a": 0}, [1, None]))
    written = round_trip(lambda x: STRUCTURED.bind(x, tree=tree), X, run=False)
    assert 'tree=jax.tree.structure(({"a": 0}, [0, None]))' in written.text
    assert not written.placeholders


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

    with pytest.raises(Unsourceable, match="its devices are not present"):
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
