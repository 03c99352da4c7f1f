"""Inverses of primitives with one operand, and of those with two operands of which one is known.

For a function that takes a value more than once, the result is the principal one: the operand is
assumed to lie in the range of JAX's inverse function (a table in `docs/source/interpreters.md` has
these ranges). A conversion of dtypes is inverted only if it is lossless.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsight_source.compat import avals, control_flow
from jaxsight_source.compat.equations import called, function_name
from jaxsight_source.compat.jaxpr_types import Aval, DType, Params
from jaxsight_source.compat.staging import evaluate
from jaxsight_source.inversion.network import (
    NO_RULE,
    Blocked,
    Network,
    Node,
    Placed,
    Solution,
    inverses,
)
from jaxsight_source.jaxprs.same.comparison import same_jaxpr

Unary: TypeAlias = Callable[[jax.Array, Aval, Params], jax.Array]
"""Computes the operand from the result, the operand's abstract value and the parameters."""


def unary(rows: Mapping[str, Unary]) -> None:
    """Register the inverses of primitives with one input and one output."""
    for name, inverse in rows.items():
        inverses(name)(functools.partial(_undone, inverse))


def _undone(inverse: Unary, placed: Placed, network: Network) -> Solution:
    (argument,) = placed.inputs
    compute = lambda y: [inverse(y, argument.aval, placed.params)]
    return Solution(placed.outputs, placed.inputs, compute)


_PAIRS = [
    ("acos", "cos"), ("acosh", "cosh"), ("asin", "sin"), ("asinh", "sinh"), ("atan", "tan"),
    ("atanh", "tanh"), ("erf", "erf_inv"), ("exp", "log"), ("expm1", "log1p"), ("sqrt", "square"),
]  # fmt: skip
"""Functions of `jax.lax`, each with its inverse."""

_INVERSES: dict[str, Callable[[jax.Array], jax.Array]] = {
    **{one: getattr(lax, other) for pair in _PAIRS for one, other in (pair, pair[::-1])},
    "cbrt": lambda y: lax.integer_pow(y, 3),
    "erfc": lambda y: lax.erf_inv(1 - y),
    "exp2": jnp.log2,
    "log2": lax.exp2,
    "logistic": lambda y: lax.sub(lax.log(y), lax.log1p(lax.neg(y))),
    "neg": lax.neg,
    "not": lax.bitwise_not,
    "rsqrt": lambda y: lax.integer_pow(y, -2),
}
for _name in ("copy", "copy_p", "name", "sharding_constraint", "stop_gradient", "reshard"):
    _INVERSES[_name] = lambda y: y


def _of_result(inverse: Callable[[jax.Array], jax.Array]) -> Unary:
    return lambda y, aval, params: inverse(y)


unary({name: _of_result(own) for name, own in _INVERSES.items()})
unary(
    {
        "bitcast_convert_type": lambda y, aval, params: lax.bitcast_convert_type(y, aval.dtype),
        "conj": lambda y, aval, params: (
            lax.conj(y) if jnp.issubdtype(aval.dtype, np.complexfloating) else lax.real(y)
        ),
    }
)


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


@inverses("sub", "xor")
def _sub(placed: Placed, network: Network) -> Solution | Blocked:
    if placed.name == "xor":
        return two_arguments(placed, network, lax.bitwise_xor, lax.bitwise_xor)
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


@inverses("custom_jvp_call")
def _custom_jvp(placed: Placed, network: Network) -> Solution | Blocked:
    program = called(placed.equation)
    match function_name(program) if program is not None else "":
        case "logaddexp" if _is(placed, jnp.logaddexp):
            return two_arguments(placed, network, _log_difference, _log_difference)
        case "logit" if _is(placed, jax.scipy.special.logit):
            return Solution(placed.outputs, placed.inputs, lambda y: [lax.logistic(y)])
        case _:
            return Blocked(NO_RULE)


def _log_difference(y: jax.Array, operand: jax.Array) -> jax.Array:
    """Return `log(exp(y) - exp(operand))`; for softplus `operand` is 0."""
    return lax.add(y, lax.log(lax.neg(lax.expm1(lax.sub(operand, y)))))


def _is(placed: Placed, function: Callable[..., object]) -> bool:
    program = called(placed.equation)
    like = [avals.struct(n.aval.shape, n.aval.dtype, avals.weak(n.aval)) for n in placed.inputs]
    waiting = list(jax.make_jaxpr(function)(*like).eqns)
    while waiting:
        equation = waiting.pop()
        inner = called(equation)
        if inner is None:
            continue
        if equation.primitive.name == placed.name:
            return program is not None and same_jaxpr(program.jaxpr, inner.jaxpr) is None
        waiting += inner.jaxpr.eqns
    return False


@inverses("dot_general")
def _dot_general(placed: Placed, network: Network) -> Solution | Blocked:
    """Solve `x @ matrix = y` for a known square matrix, one contraction and no batch dimensions."""
    (left, right), (output,) = placed.inputs, placed.outputs
    if not (network.knows(left) or network.knows(right)):
        return Blocked("has two unknown operands")
    contracted, (batch, _) = placed.params["dimension_numbers"]
    at = 0 if network.knows(left) else 1
    matrix, unknown = (left, right) if at == 0 else (right, left)
    shape, dtypes = matrix.aval.shape, {node.aval.dtype for node in (left, right, output)}
    if batch or len(contracted[0]) != 1 or len(shape) != 2 or shape[0] != shape[1]:
        return Blocked("is invertible for a product with one square matrix only")
    if len(dtypes) > 1 or not jnp.issubdtype(output.aval.dtype, np.inexact):
        return Blocked("is invertible for operands of one floating-point dtype only")
    (contracted_axis,), (unknown_axis,) = contracted[at], contracted[1 - at]
    rank = len(output.aval.shape)

    def compute(y: jax.Array, values: jax.Array) -> list[jax.Array]:
        # The matrix's free dimension is the result's first when the matrix is on the left, its last
        # otherwise.
        free = 0 if at == 0 else rank - 1
        columns = jnp.moveaxis(y, free, 0).reshape(shape[0], -1)
        a = values.T if contracted_axis == 0 else values
        solved = jnp.linalg.solve(a, columns)
        free_shape = [size for index, size in enumerate(y.shape) if index != free]
        return [jnp.moveaxis(solved.reshape(shape[0], *free_shape), 0, unknown_axis)]

    return Solution((output, matrix), (unknown,), compute)


@inverses("triangular_solve")
def _triangular_solve(placed: Placed, network: Network) -> Solution | Blocked:
    (matrix, unknown), (output,) = placed.inputs, placed.outputs
    params = placed.params
    if not network.knows(matrix):
        return Blocked("has an unknown matrix")

    def compute(y: jax.Array, a: jax.Array) -> list[jax.Array]:
        a = jnp.tril(a) if params["lower"] else jnp.triu(a)
        if params["unit_diagonal"]:
            size = a.shape[-1]
            a = jnp.where(jnp.eye(size, dtype=bool), jnp.ones((), a.dtype), a)
        if params["conjugate_a"]:
            a = a.conj()
        if params["transpose_a"]:
            a = jnp.swapaxes(a, -1, -2)
        return [jnp.matmul(a, y) if params["left_side"] else jnp.matmul(y, a)]

    return Solution((output, matrix), (unknown,), compute)


@inverses("fft")
def _fft(placed: Placed, network: Network) -> Solution | Blocked:
    (argument,), (output,) = placed.inputs, placed.outputs
    undone = {
        lax.FftType.FFT: lax.FftType.IFFT,
        lax.FftType.IFFT: lax.FftType.FFT,
        lax.FftType.RFFT: lax.FftType.IRFFT,
    }.get(lax.FftType(placed.params["fft_type"]))
    lengths = placed.params["fft_lengths"]
    if undone is None:
        return Blocked("to real numbers discards part of its operand")
    return Solution((output,), (argument,), lambda y: [lax.fft(y, undone, lengths)])


@inverses("custom_linear_solve")
def _linear_solve(placed: Placed, network: Network) -> Solution | Blocked:
    """Multiply the solution of a linear system by the system's known matrix."""
    captured = control_flow.captures(placed.equation, placed.inputs)
    assert captured is not None
    (_, product, matrix), *_ = captured[0]
    if product is None or not network.knows(*matrix):
        return Blocked("has an unknown matrix")

    def compute(*values: jax.Array) -> list[jax.Array]:
        return evaluate(product, *values)

    return Solution((*matrix, *placed.outputs), tuple(captured[1]), compute)
