"""JX443: a derivative of or at what has none: no scalar, integers, a pair without `has_aux`."""

# Longer than most rules: a table of thirteen errors, of which six need the arguments of the call.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import keyword
from jaxsight.rules.wording import quoted, short

RULE = Rule(__name__, "Derivative of a result or at an argument that has none.")

_NO_DERIVATIVE = "a derivative with respect to integers is not defined"


def _function(error: Matched) -> str:
    """Return the function that is differentiated, if the expression says it."""
    match error.call:
        case ast.Call(func=ast.Call(args=[function, *_])) if not isinstance(function, ast.Lambda):
            return quoted(ast.unparse(function), most=30)
        case _:
            return "the differentiated function"


ERRORS = ErrorTable(RULE, "TypeError", "ValueError", function=_function)


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize a gradient that is unpacked with its aux in one row, then JAX's errors."""
    if re.match(r"not enough values to unpack \(expected 3, got 2\)", error.message):
        if "value_and_grad" in error.line and "has_aux=True" in error.line:
            return Violation(
                "`value_and_grad` with `has_aux=True` returns two values, not three",
                help="unpack the pair: `(loss, aux), grads = …`",
            )
        return None
    return ERRORS.explain(error)


ERRORS.table(r"""
Gradient only defined for scalar-output functions\. Output had shape: (?P<shape>\(1(?:, ?1)*,?\))
    gradient of {function}, whose result has shape {shape}
    help: make it a scalar: `.reshape(())`, or `.squeeze()`
    note: `jax.grad` differentiates scalars, of shape `()`
Gradient only defined for scalar-output functions\. Output had shape: (?P<shape>\([\d, ]*\))
    gradient of {function}, whose result has shape {shape}
    help: reduce it to one loss with `jnp.sum` or `jnp.mean`; for one derivative per result use
        `jax.jacobian`, for one per example `jax.vmap(jax.grad(f))`
    note: `jax.grad` differentiates scalars, of shape `()`
Gradient only defined for scalar-output functions\. Output was None\.?$
    gradient of {function}, which returns None
    help: return the loss from the function
Gradient only defined for scalar-output functions\. Output was \([^()\n]*\([^()\n]*\), [^\n]*$
    gradient of {function}, which returns more than a scalar
    help: pass `has_aux=True` if it returns `(loss, aux)`; the gradient then comes with `aux`
    note: with it `jax.grad` returns `(grads, aux)`, `value_and_grad` `((loss, aux), grads)`
Gradient only defined for scalar-output functions\. Output was [^\n]*$
    gradient of {function}, whose result is not a scalar
    help: return one scalar array
(?P<api>\w+) requires (?:real- or complex-valued|real-valued|complex-valued) inputs \(input dtype
        that is a sub-dtype of np\.\w+\), but got complex\d+
    `{api}` differentiates complex numbers
    help: pass `holomorphic=True` for a holomorphic function, or real and imaginary part as two
        arguments
""")


@ERRORS.explains(
    r"(?P<api>\w+) requires (?:real- or complex-valued|real-valued|complex-valued) inputs \(input "
    r"dtype that is a sub-dtype of np\.\w+\), but got (?P<dtype>\w+)"
)
def of_input(error: Matched) -> Violation:
    api, dtype, is_key = error["api"], error["dtype"], error["dtype"].startswith("key")
    position = _position(error.call)
    source = error.arguments[position] if position is not None else None
    literal = isinstance(source, ast.Constant) and type(source.value) is int
    array = error.operand(source)
    if source is None or not (literal or (array and array.dtype.startswith(("i", "u", "bool")))):
        what = "keys" if is_key else "counters and indices"
        return Violation(
            f"`{api}` differentiates an argument with a leaf of dtype {dtype}",
            help=f"keep {what} out of what is differentiated: pass them as another argument, or "
            "split with `eqx.partition`; `allow_int=True` returns `float0` for integers",
            notes=() if is_key else (_NO_DERIVATIVE,),
        )
    text = ast.unparse(source)
    help = f"differentiate at a float: `{text}.0`"
    if not literal:
        converted = f"{short(text)}.astype(jnp.float32)"
        help = f"choose what is differentiated with `argnums=`, or convert it: `{converted}`"
    return Violation(
        f"`{api}` differentiates {quoted(text)}, whose dtype is {dtype}",
        help=help,
        notes=(_NO_DERIVATIVE,),
        data=position if literal else None,
    )


def _position(call: ast.Call | None) -> int | None:
    """Return which argument `jax.grad(f, argnums=…)(…)` differentiates, if it is one."""
    if call is None or not isinstance(call.func, ast.Call) or not call.args:
        return None
    positional = call.func.args[1] if len(call.func.args) > 1 else ast.Constant(0)
    try:
        number = ast.literal_eval(keyword(call.func, "argnums") or positional)
    except (ValueError, TypeError):
        return None
    is_one = isinstance(number, int) and -len(call.args) <= number < len(call.args)
    return number if is_one else None


@ERRORS.explains(
    r"differentiating with respect to argnums=(?P<argnums>[^\n]+?) requires at least \d+ "
    r"positional arguments to be passed by the caller, but got only (?P<count>\d+)"
)
def of_position(error: Matched) -> Violation:
    count, call = error["count"], error.call
    passed = {"0": "no argument", "1": "one argument"}.get(count, f"{count} arguments")
    help = "count the arguments from 0 in `argnums=`, and pass them by position"
    if call is not None and call.keywords and count == "0":
        help = "pass what is differentiated by position, not by name"
    return Violation(
        f"derivative with respect to `argnums={error['argnums']}` of {passed} passed by position",
        help=help,
    )


ERRORS.table(r"""
(?P<api>\w+) requires (?:real- or complex-valued|real-valued|complex-valued) outputs \(output dtype
        that is a sub-dtype of np\.\w+\), but got (?P<dtype>complex\w*)
    `{api}` of {function}, whose result is {dtype}
    help: differentiate a real number such as `jnp.abs(z) ** 2`, or pass `holomorphic=True` for a
        holomorphic function of complex arguments
(?P<api>\w+) requires (?:real- or complex-valued|real-valued|complex-valued) outputs \(output dtype
        that is a sub-dtype of np\.\w+\), but got (?P<dtype>\w+)
    `{api}` of {function}, whose result is {dtype}
    help: return a loss that is a float; counts, `argmax` and comparisons have no derivative
(?:expected function with aux output to return a two-element tuple|Output of function should be a
        two-element tuple)
    {function} returns no pair, which `has_aux=True` needs
    help: return `(loss, aux)`, or remove `has_aux=True`
unexpected JAX type \(e\.g\. shape/dtype\) for argument to (?:VJP|vjp) function: got (?P<got>\S+),
        but expected (?P<expected>\S+) because
    backward pass gets a cotangent of type {got:q}, but the result is {expected:q}
    help: pass a cotangent of the type of the result: `jnp.ones_like(result)`
primal and tangent arguments to jax\.jvp do not match; dtypes must be equal.*?expected tangent dtype
        (?P<expected>\w+), but got tangent dtype (?P<got>\w+)
    tangent of `jax.jvp` has dtype {got}, its primal value {expected}
    help: make each tangent like its primal value: `jnp.ones_like(x)`
jvp called with different primal and tangent shapes;\s*Got primal shape (?P<expected>\([\d, ]*\))
        and tangent shape as (?P<got>\([\d, ]*\))
    tangent of `jax.jvp` has shape {got}, its primal value {expected}
    help: make each tangent like its primal value: `jnp.ones_like(x)`
primal and tangent arguments to jax\.jvp must be tuples or lists
    primals and tangents of {expression:q} are not tuples
    help: pass tuples with one item for each argument: `jax.jvp(f, (x,), (tangent,))`
unexpected tree structure\.?\s+The argument to a VJP function|Tree structure of cotangent
        input|cotangent tree does not match
    backward pass {expression:q} gets cotangents of another structure than the result
    help: pass one cotangent for each result in the same containers, `jnp.zeros_like(result)` for
        those that are not used
""")


# The fix: differentiate at a float in place of an integer.


@RULE.fixes("a float where a derivative is taken (unsafe)")
def candidates(context: FixContext, position: int) -> Iterator[Candidate]:
    """Yield the call with a float in place of the integer."""
    if isinstance(context.node, ast.Call):
        integer = context.node.args[position]
        text = f"{context.text(integer)}.0"
        yield context.replaced(integer, text, "Differentiate at a float", same=False)
