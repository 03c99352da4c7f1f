"""Any one change to a program is found, wherever it is: parameters, literals, operands, order,
effects, weak types, donation.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.extend.core.primitives
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jaxsight import same_jaxpr

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

NAMES = frozenset({"name", "debug_info", "linear", "out_trees", "ft_in", "ft_out"})
"""Parameters that may differ: they are names, or say again what others say."""

COUNTS = frozenset({"num_consts", "num_carry", "cond_nconsts", "body_nconsts"})
"""Parameters that no equation could have with one more or less."""


def indexed(x: Any) -> Any:
    return x[1:, ::2], x[jnp.array([2, 0])], x.at[0].add(1.0), lax.dynamic_slice(x, (0, 1), (2, 2))


def reduced(x: Any) -> Any:
    return x.sum(0), x.max(1), jnp.argmin(x, 1), jnp.cumsum(x, 0), lax.top_k(x, 2), jnp.sort(x, 1)


def shaped(x: Any) -> Any:
    y = lax.pad(x, 0.0, ((1, 0, 0), (0, 2, 1)))
    return x.T, x.reshape(4, 3), jnp.concatenate([x, x], 1), jnp.broadcast_to(x, (2, 3, 4)), y[::-1]


def multiplied(x: Any) -> Any:
    weights = jnp.ones((3, 4, 2, 2))
    convolved = lax.conv_general_dilated(jnp.ones((1, 4, 5, 5)), weights, (1, 2), "SAME")
    return jnp.einsum("ij,kj->ik", x, x, precision="high"), convolved


def random(x: Any) -> Any:
    key = jax.random.fold_in(jax.random.key(3), 7)
    return jax.random.normal(key, (3,)), jax.random.bits(key, (2,), np.uint16), x


def controlled(x: Any) -> Any:
    total, rows = lax.scan(lambda c, r: (c * r.sum(), r + c), 1.0, x, reverse=True, unroll=2)
    looped = lax.while_loop(lambda c: c.sum() < 9, lambda c: c * 2 + x, x)
    chosen = lax.cond(total > 0, jnp.sin, jnp.cos, x)
    return rows, looped, chosen, lax.switch(jnp.int32(1), [jnp.sin, jnp.tanh, jnp.exp], x)


def called(x: Any) -> Any:
    inner = jax.jit(lambda a, b: a * b + 1, donate_argnums=0, keep_unused=True)
    kept = jax.checkpoint(jnp.sin, prevent_cse=False)
    return inner(x, x + 1), kept(x), jax.nn.relu(x), jax.nn.silu(x)


def told(x: Any) -> Any:
    jax.debug.print("first {}", x)
    jax.debug.print("then {}", x, ordered=True)
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3, 4), np.float32), x)


PROGRAMS = [indexed, reduced, shaped, multiplied, random, controlled, called, told]


@dataclass(frozen=True)
class Mutant:
    what: str
    jaxpr: Any


def opened(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)


def closed(jaxpr: Any, inside: Any) -> Any:
    return inside if opened(jaxpr) is jaxpr else jaxpr.replace(jaxpr=inside)


def with_equation(jaxpr: Any, index: int, equation: Any) -> Any:
    equations = list(opened(jaxpr).eqns)
    equations[index] = equation
    return closed(jaxpr, opened(jaxpr).replace(eqns=equations))


def changed(value: Any) -> Iterator[Any]:
    """Other values of the same kind, of which each could be told."""
    match value:
        case bool():
            yield not value
        case enum.Enum():
            yield next(member for member in type(value) if member is not value)
        case int():
            yield value + 1
        case float():
            yield value + 1
            if value == 0:
                yield -value
        case str():
            yield value + "x"
        case np.dtype():
            yield np.dtype(np.int8 if value != np.int8 else np.int16)
        case tuple() if hasattr(value, "_fields"):
            for field, part in zip(value._fields, value, strict=True):
                for other in changed(part):
                    yield value._replace(**{field: other})
        case tuple():
            for place, part in enumerate(value):
                for other in changed(part):
                    yield (*value[:place], other, *value[place + 1 :])
            if value:
                yield value[:-1]
            yield (*value, 0)
        case None:
            yield 0
        case _ if hasattr(opened(value), "eqns"):
            yield from (mutant.jaxpr for mutant in mutants(value))
        case _:
            return


def mutants(jaxpr: Any) -> Iterator[Mutant]:
    for index, equation in enumerate(opened(jaxpr).eqns):
        name = equation.primitive.name
        for key, value in equation.params.items():
            if key in NAMES | COUNTS:
                continue
            for other in changed(value):
                made = equation.replace(params=equation.params | {key: other})
                yield Mutant(f"{key} of {name}", with_equation(jaxpr, index, made))
        for place, atom in enumerate(equation.invars):
            if hasattr(atom, "val"):
                made = type(atom)(np.asarray(atom.val) + 1, atom.aval)
                invars = [*equation.invars[:place], made, *equation.invars[place + 1 :]]
                swapped = equation.replace(invars=invars)
                yield Mutant(f"literal of {name}", with_equation(jaxpr, index, swapped))
        first, *others = equation.invars or [None]
        if others and first is not others[0]:
            invars = [others[0], first, *others[1:]]
            yield Mutant(
                f"operands of {name}",
                with_equation(jaxpr, index, equation.replace(invars=invars)),
            )
        if equation.effects:
            without = equation.replace(effects=frozenset())
            yield Mutant(f"effects of {name}", with_equation(jaxpr, index, without))


def traced(function: Any) -> Any:
    return jax.make_jaxpr(function)(X)


@pytest.mark.parametrize("function", PROGRAMS)
def test_every_change_is_found(function: Any) -> None:
    original = traced(function)
    assert same_jaxpr(original, original) is None
    unseen: dict[str, int] = {}
    count = 0
    for mutant in mutants(original):
        count += 1
        if same_jaxpr(original, mutant.jaxpr) is None:
            unseen[mutant.what] = unseen.get(mutant.what, 0) + 1
    assert count > 8
    assert not unseen


def test_where_a_change_is_is_said() -> None:
    original = traced(controlled)
    scan = next(e for e in opened(original).eqns if e.primitive.name == "scan")
    index = opened(original).eqns.index(scan)
    changed_ = scan.replace(params=scan.params | {"reverse": False})
    found = same_jaxpr(original, with_equation(original, index, changed_))
    assert found is not None
    assert (found.part, found.left, found.right) == ("scan's reverse", "True", "False")


def test_weak_types_donation_and_order_count() -> None:
    def donating(*positions: int) -> Any:
        inner = jax.jit(lambda a, b: a * b, donate_argnums=positions)
        return traced(lambda x: inner(x, x + 1))

    assert same_jaxpr(donating(0), donating(1)) is not None
    ordered = functools.partial(lambda swap, x: (x + 1, x * 2)[:: -1 if swap else 1])
    assert same_jaxpr(*(traced(functools.partial(ordered, s)) for s in (True, False))) is not None
    strong = jax.make_jaxpr(lambda x: x * 2)(np.float32(1))
    assert same_jaxpr(jax.make_jaxpr(lambda x: x * 2)(1.0), strong) is not None


def test_numbers_of_two_types_are_not_the_same() -> None:
    def exported(value: Any) -> Any:
        call = jax.ffi.ffi_call("nothing", jax.ShapeDtypeStruct((3, 4), np.float32))
        return traced(lambda x: call(x, number=value))

    assert same_jaxpr(exported(np.int32(1)), exported(np.int32(1))) is None
    assert same_jaxpr(exported(np.int32(1)), exported(np.float32(1))) is not None
    assert same_jaxpr(exported(np.int32(1)), exported(np.int64(1))) is not None
    assert same_jaxpr(exported(np.float32(0)), exported(np.float32(-0.0))) is not None


def test_sharding_over_a_mesh_without_axes_is_none() -> None:
    def converted(sharding: Any) -> Any:
        bind = jax.extend.core.primitives.convert_element_type_p.bind
        return traced(
            lambda x: bind(x, new_dtype=np.dtype("float16"), weak_type=False, sharding=sharding)
        )

    nowhere = jax.sharding.AbstractMesh((), ())
    sharding = jax.sharding.NamedSharding(nowhere, jax.sharding.PartitionSpec(None, None))
    assert same_jaxpr(converted(None), converted(None)) is None
    assert same_jaxpr(converted(None), converted(sharding)) is None
    mesh = jax.sharding.AbstractMesh((1,), ("a",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("a", None))
    assert same_jaxpr(converted(None), converted(split)) is not None
