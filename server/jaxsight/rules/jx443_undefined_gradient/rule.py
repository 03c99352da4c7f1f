"""JX443: a derivative of or at what has none: no scalar, integers, a pair without `has_aux`."""

# Longer than most rules: a table of thirteen errors, of which six need the arguments of the call.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.error_table import ErrorTable
from jaxsight.rules.failure_text import operand
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import keyword, parsed_call
from jaxsight.rules.wording import quoted, short
from jaxsight.wire.observations import Failure

RULE = Rule(__name__, "Derivative of a result or at an argument that has none.")

_PAIR = re.compile(r"\([^()]*\([^()]*\), ")
_SCALAR = r"Gradient only defined for scalar-output functions\. Output "
_VALUED = r"(?P<api>\w+) requires (?:real- or complex-valued|real-valued|complex-valued) "
_AUX_FORM = "with it `jax.grad` returns `(grads, aux)`, `value_and_grad` `((loss, aux), grads)`"
_NO_DERIVATIVE = "a derivative with respect to integers is not defined"


@dataclass(frozen=True, slots=True)
class AtInteger:
    """The derivative is taken at an integer literal, for the fix."""

    position: int
    """Of the argument; negative from the end."""


ERRORS = ErrorTable("TypeError", "ValueError")


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize a gradient that is unpacked with its aux in one row, then JAX's errors."""
    if re.match(r"not enough values to unpack \(expected 3, got 2\)", failure.message):
        if "value_and_grad" in line and "has_aux=True" in line:
            return Violation(
                "`value_and_grad` with `has_aux=True` returns two values, not three",
                help="unpack the pair: `(loss, aux), grads = …`",
            )
        return None
    return ERRORS.explain(failure, expression, line)


def _function(expression: str) -> str:
    """Return the function that is differentiated, if the expression says it."""
    call = parsed_call(expression)
    inner = call.func if call is not None and isinstance(call.func, ast.Call) else None
    if inner is None or not inner.args or isinstance(inner.args[0], ast.Lambda):
        return "the differentiated function"
    return quoted(ast.unparse(inner.args[0]), most=30)


@ERRORS.explains(_SCALAR + r"had shape: (?P<shape>\([\d, ]*\))")
def of_shape(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    help = (
        "reduce it to one loss with `jnp.sum` or `jnp.mean`; for one derivative per result use "
        "`jax.jacobian`, for one per example `jax.vmap(jax.grad(f))`"
    )
    if set(re.findall(r"\d+", match["shape"])) == {"1"}:
        help = "make it a scalar: `.reshape(())`, or `.squeeze()`"
    return Violation(
        f"gradient of {_function(expression)}, whose result has shape {match['shape']}",
        help=help,
        notes=("`jax.grad` differentiates scalars, of shape `()`",),
    )


@ERRORS.explains(_SCALAR + r"was (?P<output>[^\n]*?)\.?$")
def of_output(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    function = _function(expression)
    if match["output"] == "None":
        return Violation(
            f"gradient of {function}, which returns None", help="return the loss from the function"
        )
    if _PAIR.match(match["output"]):
        return Violation(
            f"gradient of {function}, which returns more than a scalar",
            help="pass `has_aux=True` if it returns `(loss, aux)`; the gradient then comes with "
            "`aux`",
            notes=(_AUX_FORM,),
        )
    return Violation(
        f"gradient of {function}, whose result is not a scalar", help="return one scalar array"
    )


ERRORS.says(
    _VALUED + r"inputs \(input dtype that is a sub-dtype of np\.\w+\), but got complex\d+",
    "`{api}` differentiates complex numbers",
    help="pass `holomorphic=True` for a holomorphic function, or real and imaginary part as two "
    "arguments",
)


@ERRORS.explains(
    _VALUED + r"inputs \(input dtype that is a sub-dtype of np\.\w+\), but got (?P<dtype>\w+)"
)
def of_input(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    api, dtype = match["api"], match["dtype"]
    what = "keys" if dtype.startswith("key") else "counters and indices"
    apart = (
        f"keep {what} out of what is differentiated: pass them as another argument, or split with "
        "`eqx.partition`; `allow_int=True` returns `float0` for integers"
    )
    call = parsed_call(expression)
    position = _position(call)
    source = call.args[position] if call is not None and position is not None else None
    literal = isinstance(source, ast.Constant) and type(source.value) is int
    type_ = operand(failure, source)
    is_array = type_ is not None and type_.dtype.startswith(("i", "u", "bool"))
    if source is None or not (literal or is_array):
        return Violation(
            f"`{api}` differentiates an argument with a leaf of dtype {dtype}",
            help=apart,
            notes=() if dtype.startswith("key") else (_NO_DERIVATIVE,),
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
        data=AtInteger(position) if literal and position is not None else None,
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
    _VALUED + r"outputs \(output dtype that is a sub-dtype of np\.\w+\), but got (?P<dtype>\w+)"
)
def of_result(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    help = "return a loss that is a float; counts, `argmax` and comparisons have no derivative"
    if match["dtype"].startswith("complex"):
        help = (
            "differentiate a real number such as `jnp.abs(z) ** 2`, or pass `holomorphic=True` for "
            "a holomorphic function of complex arguments"
        )
    return Violation(
        f"`{match['api']}` of {_function(expression)}, whose result is {match['dtype']}", help=help
    )


@ERRORS.explains(
    r"expected function with aux output to return a two-element tuple|Output of function should "
    r"be a two-element tuple"
)
def of_aux(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    return Violation(
        f"{_function(expression)} returns no pair, which `has_aux=True` needs",
        help="return `(loss, aux)`, or remove `has_aux=True`",
    )


ERRORS.table(r"""
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
""")


@ERRORS.explains(
    r"differentiating with respect to argnums=(?P<argnums>[^\n]+?) requires at least \d+ "
    r"positional arguments to be passed by the caller, but got only (?P<count>\d+)"
)
def of_position(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    count = match["count"]
    passed = {"0": "no argument", "1": "one argument"}.get(count, f"{count} arguments")
    call = parsed_call(expression)
    help = "count the arguments from 0 in `argnums=`, and pass them by position"
    if call is not None and call.keywords and count == "0":
        help = "pass what is differentiated by position, not by name"
    return Violation(
        f"derivative with respect to `argnums={match['argnums']}` of {passed} passed by position",
        help=help,
    )


ERRORS.table(r"""
primal and tangent arguments to jax\.jvp must be tuples or lists
    primals and tangents of {expression:q} are not tuples
    help: pass tuples with one item for each argument: `jax.jvp(f, (x,), (tangent,))`
unexpected tree structure\.?\s+The argument to a VJP function
    backward pass {expression:q} gets cotangents of another structure than the result
    help: pass one cotangent for each result in the same containers, `jnp.zeros_like(result)` for
        those that are not used
Tree structure of cotangent input|cotangent tree does not match
    backward pass {expression:q} gets cotangents of another structure than the result
    help: pass one cotangent for each result in the same containers, `jnp.zeros_like(result)` for
        those that are not used
""")


# The fix: differentiate at a float in place of an integer.


@RULE.fixes("a float where a derivative is taken (unsafe)")
def candidates(context: FixContext, at: AtInteger) -> Iterator[Candidate]:
    """Yield the call with a float in place of the integer."""
    if isinstance(context.node, ast.Call):
        integer = context.node.args[at.position]
        edit = context.replace(integer, f"{context.text(integer)}.0")
        yield Candidate("Differentiate at a float", (edit,), same=False)
