"""Inverses of primitives with one operand, and of those with two operands of which one is known.

For a function that takes a value more than once, the result is the principal one: the operand is
assumed to lie in the range of JAX's inverse function (a table in `docs/source/interpreters.md` has
these ranges). A conversion of dtypes is inverted only if it is lossless.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.compat.jaxpr_types import Aval, DType
from jaxsight_source.inversion.network import Blocked, Network, Node, Placed, Solution, inverses

Unary: TypeAlias = Callable[..., jax.Array]
"""Computes the operand from the result, the operand's abstract value and the parameters."""


def unary(*primitives: str) -> Callable[[Unary], Unary]:
    """Register the inverse of primitives with one input and one output.

    It is called as `inverse(y, aval, **params)`, where `aval` is the input's.
    """

    def register(inverse: Unary) -> Unary:
        @inverses(*primitives)
        def rule(placed: Placed, network: Network) -> Solution | Blocked:
            (argument,), (output,) = placed.inputs, placed.outputs
            compute = lambda y: [inverse(y, argument.aval, **placed.params)]
            return Solution((output,), (argument,), compute)

        return inverse

    return register


_INVERSES: dict[str, Callable[[jax.Array], jax.Array]] = {
    "acos": lax.cos,
    "acosh": lax.cosh,
    "asin": lax.sin,
    "asinh": lax.sinh,
    "atan": lax.tan,
    "atanh": lax.tanh,
    "cbrt": lambda y: lax.integer_pow(y, 3),
    "cos": lax.acos,
    "cosh": lax.acosh,
    "erf": lax.erf_inv,
    "erf_inv": lax.erf,
    "erfc": lambda y: lax.erf_inv(1 - y),
    "exp": lax.log,
    "exp2": jnp.log2,
    "expm1": lax.log1p,
    "log": lax.exp,
    "log1p": lax.expm1,
    "log2": lax.exp2,
    "logistic": lambda y: lax.sub(lax.log(y), lax.log1p(lax.neg(y))),
    "neg": lax.neg,
    "not": lax.bitwise_not,
    "rsqrt": lambda y: lax.integer_pow(y, -2),
    "sin": lax.asin,
    "sinh": lax.asinh,
    "sqrt": lax.square,
    "square": lax.sqrt,
    "tan": lax.atan,
    "tanh": lax.atanh,
}
for _name in ("copy", "copy_p", "name", "sharding_constraint", "stop_gradient", "reshard"):
    _INVERSES[_name] = lambda y: y
for _name, _inverse in _INVERSES.items():
    unary(_name)(lambda y, aval, inverse=_inverse, **params: inverse(y))


@unary("bitcast_convert_type")
def _bitcast(y: jax.Array, aval: Aval, **params: object) -> jax.Array:
    return lax.bitcast_convert_type(y, aval.dtype)


@unary("conj")
def _conj(y: jax.Array, aval: Aval, **params: object) -> jax.Array:
    return lax.conj(y) if jnp.issubdtype(aval.dtype, np.complexfloating) else lax.real(y)


@inverses("integer_pow")
def _integer_pow(placed: Placed, network: Network) -> Solution | Blocked:
    (argument,), (output,) = placed.inputs, placed.outputs
    power = placed.params["y"]
    if not jnp.issubdtype(argument.aval.dtype, np.floating) and power != 1:
        return Blocked(f"with exponent {power} is invertible for real floating point only")
    if power == 0:
        return Blocked("with exponent 0 discards its operand")
    return Solution((output,), (argument,), lambda y: [_root(y, power)])


def _root(y: jax.Array, power: int) -> jax.Array:
    """Return the real root of `y`; of two roots, the nonnegative one."""
    if power < 0:
        y, power = lax.reciprocal(y), -power
    match power:
        case 1:
            return y
        case 2:
            return lax.sqrt(y)
        case 3:
            return lax.cbrt(y)
        case _ if power % 2:
            return lax.sign(y) * lax.pow(lax.abs(y), 1 / power)
        case _:
            return lax.pow(y, 1 / power)


@inverses("convert_element_type")
def _convert(placed: Placed, network: Network) -> Solution | Blocked:
    (argument,), (output,) = placed.inputs, placed.outputs
    before, after = argument.aval.dtype, output.aval.dtype
    if not lossless(before, after):
        return Blocked(f"from {before} to {after} loses information")
    return Solution((output,), (argument,), lambda y: [_converted(y, before)])


def _converted(y: jax.Array, dtype: DType) -> jax.Array:
    if dtype == np.bool_:
        return lax.ne(y, lax.full_like(y, 0))
    if jnp.issubdtype(y.dtype, np.complexfloating) and not jnp.issubdtype(
        dtype, np.complexfloating
    ):
        y = lax.real(y)
    return lax.convert_element_type(y, dtype)


def lossless(before: object, after: object) -> bool:
    """Return whether a conversion between two dtypes keeps all values distinct and unrounded."""
    if before == after:
        return True
    if not (isinstance(before, np.dtype) and isinstance(after, np.dtype)):
        return False  # typed keys have dtypes of JAX's own
    if before.kind in "iu" and before.itemsize == 8 and after.kind not in "iu":
        return False  # NumPy casts these to floats, which round them
    is_wider = before.kind == "b" or after.itemsize > before.itemsize
    return is_wider and np.can_cast(before, after, "safe")


@inverses("reduce_precision")
def _reduce_precision(placed: Placed, network: Network) -> Solution | Blocked:
    (argument,), (output,) = placed.inputs, placed.outputs
    limits = jnp.finfo(argument.aval.dtype)  # type: ignore[no-untyped-call]
    exponent, mantissa = placed.params["exponent_bits"], placed.params["mantissa_bits"]
    if exponent < limits.nexp or mantissa < limits.nmant:
        return Blocked("rounds its operand")
    return Solution((output,), (argument,), lambda y: [y])


@inverses("complex")
def _complex(placed: Placed, network: Network) -> Solution | Blocked:
    (output,) = placed.outputs
    return Solution((output,), placed.inputs, lambda y: [lax.real(y), lax.imag(y)])


def _scalar(node: Node, value: object) -> jax.Array:
    """Return a known value as an operand of `jax.lax`.

    Python numbers of the program get the dtype of their node.
    """
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return cast(jax.Array, value)
    return cast(jax.Array, np.asarray(value, node.aval.dtype)[()])


Binary: TypeAlias = Callable[[jax.Array, jax.Array], jax.Array]
"""Computes the unknown operand from the result and the known operand."""


def two_arguments(
    placed: Placed, network: Network, first: Binary, second: Binary
) -> Solution | Blocked:
    """Return the solution of an equation with two operands of which one is known.

    `first` computes the first operand from the result and the second one, `second` the second from
    the result and the first.
    """
    (left, right), (output,) = placed.inputs, placed.outputs
    if not network.knows(left) and not network.knows(right):
        return Blocked("has two unknown operands")
    unknown, operand, compute = (
        (right, left, second) if network.knows(left) else (left, right, first)
    )
    if unknown.aval.shape != output.aval.shape:
        return Blocked("broadcasts its unknown operand")
    return Solution(
        (output, operand), (unknown,), lambda y, value: [compute(y, _scalar(operand, value))]
    )


def _doubled(placed: Placed) -> bool:
    return placed.inputs[0] is placed.inputs[1]


def _is_floating(placed: Placed) -> bool:
    return bool(jnp.issubdtype(placed.outputs[0].aval.dtype, np.inexact))


@inverses("add", "add_any")
def _add(placed: Placed, network: Network) -> Solution | Blocked:
    if _doubled(placed) and _is_floating(placed):
        return Solution(placed.outputs, placed.inputs[:1], lambda y: [y / 2])
    return two_arguments(placed, network, lax.sub, lax.sub)


@inverses("sub")
def _sub(placed: Placed, network: Network) -> Solution | Blocked:
    return two_arguments(placed, network, lax.add, lambda y, first: lax.sub(first, y))


@inverses("mul")
def _mul(placed: Placed, network: Network) -> Solution | Blocked:
    if _doubled(placed) and jnp.issubdtype(placed.outputs[0].aval.dtype, np.floating):
        return Solution(placed.outputs, placed.inputs[:1], lambda y: [lax.sqrt(y)])
    for node in placed.inputs:
        if _holds(network, node, 0):
            return Blocked("multiplies by 0")
    return two_arguments(placed, network, lax.div, lax.div)


@inverses("div")
def _div(placed: Placed, network: Network) -> Solution | Blocked:
    if not _is_floating(placed):
        return Blocked("of integers rounds its result")
    if not network.knows(placed.inputs[0]) and _is_sum(placed.inputs[1], placed.inputs[0], network):
        return Blocked("by the sum of its operand is the same for operands that differ by a factor")
    return two_arguments(placed, network, lax.mul, lambda y, first: lax.div(first, y))


def _is_sum(node: Node, operand: Node, network: Network) -> bool:
    """Return whether a node has sums of an operand's elements, as the divisor of a softmax does."""
    maker = network.maker(node)
    while maker is not None and maker.name in ("", "broadcast_in_dim", "reshape"):
        maker = network.maker(maker.inputs[0])
    return maker is not None and maker.name == "reduce_sum" and maker.inputs[0] is operand


@inverses("xor")
def _xor(placed: Placed, network: Network) -> Solution | Blocked:
    return two_arguments(placed, network, lax.bitwise_xor, lax.bitwise_xor)


@inverses("pow")
def _pow(placed: Placed, network: Network) -> Solution | Blocked:
    base, power = placed.inputs
    if _holds(network, power, 0):
        return Blocked("with exponent 0 discards its base")
    if _holds(network, base, 1):
        return Blocked("with base 1 discards its exponent")

    def root(y: jax.Array, power: jax.Array) -> jax.Array:
        return lax.pow(y, lax.reciprocal(lax.convert_element_type(power, y.dtype)))

    if not jnp.issubdtype(power.aval.dtype, np.inexact) and not network.knows(power):
        return Blocked("has an unknown integer exponent")
    return two_arguments(placed, network, root, lambda y, base: lax.div(lax.log(y), lax.log(base)))


def _holds(network: Network, node: Node, number: int) -> bool:
    """Return whether a value that is known at trace time has `number` among its elements."""
    if math.prod(node.aval.shape) > _MOST_CHECKED:
        return False
    value = network.constant(node)
    return value is not None and bool(np.any(np.asarray(value) == number))


_MOST_CHECKED = 1 << 20
"""Elements of a value that is computed to look for zeros: chosen, 4 MiB of float32."""
