"""JX448: a transformation is given no function, or one with other parameters than it passes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import call_operands, dotted, name_of
from jaxsight.rules.wording import quoted, short

RULE = Rule(__name__, "Transformation gets no function, or one with other parameters.")

_TAKES = re.compile(
    r"(?P<function>[\w.<>]+)\(\) takes (?:from \d+ to )?(?P<takes>\d+) positional arguments? but "
    r"(?P<given>\d+) (?:was|were) given"
)
_MISSES = re.compile(
    r"(?P<function>[\w.<>]+)\(\) missing \d+ required positional arguments?: '(?P<first>\w+)'"
)
_NO_FUNCTION = re.compile(
    r"Expected a callable value, got |the first argument must be callable|"
    r"lax\.cond: true_fun and false_fun arguments should be callable"
)
_OPERANDS = "write one parameter for each operand after the branches, none if there is none"
_PASSES: Mapping[str, tuple[int, str, str]] = {
    "scan": (2, "carry and item", "write it as `f(carry, x)`, and unpack tuples inside"),
    "fori_loop": (2, "index and carry", "write it as `f(i, carry)`, and unpack tuples inside"),
    "while_loop": (1, "the carry", "write it with one parameter, and unpack a tuple inside"),
    "map": (1, "one item", "write it with one parameter and unpack inside, or use `jax.vmap`"),
    "associative_scan": (2, "two operands", "write it as `f(a, b)`"),
    "cond": (-3, "the operands", _OPERANDS),
    "switch": (-2, "the operands", _OPERANDS),
}
"""What JAX's functions call the functions that they are given with, and how to write those.

How many arguments these are comes first; if it is negative, as many less than those of the call.
"""
_TREES = ("one leaf of each tree", "pass one tree for each parameter")
_ARGUMENTS = ("the call's arguments", "pass one argument for each parameter")
_DERIVATIVES = re.compile(r"(?:^|_)(?:fwd|bwd|forward|backward|vjp|jvp)(?:$|_)")
"""Names of functions that are usually rules of custom derivatives."""


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize Python's errors about parameters, where JAX is what calls the function."""
    call = error.call
    if call is None or not error.is_a("TypeError"):
        return None
    is_switch = name_of(call) == "switch" and "'function' object is not" in error.message
    if is_switch or _NO_FUNCTION.match(error.message):
        return of_value(call)
    match = _TAKES.match(error.message) or _MISSES.match(error.message)
    if match is None:
        return None
    parts = match.groupdict()
    function = parts["function"].rpartition(".")[2]
    if function not in _handed(call):
        return of_derivative(function, call)
    if "given" in parts and _passed(call) not in (None, int(parts["given"])):
        return None  # another function of that name, called inside
    api = dotted(call.func) or dotted(getattr(call.func, "func", call))
    passes, help = _PASSES.get(name_of(call), (0, *_ARGUMENTS))[1:]
    if api.endswith(("tree.map", "tree_map")):
        passes, help = _TREES
    name = "a lambda" if function == "<lambda>" else quoted(function, most=20)
    needs = f"needs `{parts['first']}`, too" if "first" in parts else ""
    return Violation(
        f"{quoted(api, 'this call', most=24)} calls {name} with {passes}, but it "
        + (needs or f"takes {parts['takes']}, not {parts['given']}"),
        help=help,
    )


def _passed(call: ast.Call) -> int | None:
    """Return how many arguments a handed function is called with; `None` if it is not known."""
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    count = len(call.args)
    if dotted(call.func).endswith(("tree.map", "tree_map")):
        return count - 1
    if (row := _PASSES.get(name_of(call))) is not None:
        return row[0] if row[0] > 0 else count + row[0]
    return count if isinstance(call.func, ast.Call) else None


def _handed(call: ast.Call) -> Iterator[str]:
    """Yield the names of the functions that a call hands over, or that it maps."""
    inner = call.func.args if isinstance(call.func, ast.Call) else []
    for argument in (*call_operands(call), *inner):
        items = argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]
        for item in items:
            yield "<lambda>" if isinstance(item, ast.Lambda) else dotted(item).rpartition(".")[2]


def of_value(call: ast.Call) -> Violation:
    """Return what is said of a value where a function belongs."""
    caller = dotted(call.func)
    if name_of(call) == "switch":
        return Violation(
            "`switch` gets its branches as several arguments",
            help="pass a list: `jax.lax.switch(index, [f, g], x)`",
        )
    if name_of(call) == "cond":
        return Violation(
            "branches of `cond` are values, not functions",
            help="choose between values with `jnp.where(condition, a, b)`; a branch is a function, "
            "such as `lambda: a`",
        )
    given = call.args[0] if call.args else None
    help = f"pass a function: `{short(f'{caller}(f)')}`"
    if isinstance(given, ast.Call) and given.args:
        function = f"{caller}({ast.unparse(given.func)})"
        help = f"pass the function, and call the result: `{short(function)}`"
    source = ast.unparse(given) if given is not None else ""
    return Violation(
        f"{quoted(caller, 'this call', most=24)} gets {quoted(source, 'a value', most=30)}, which "
        "is not a function",
        help=help,
    )


def of_derivative(function: str, call: ast.Call) -> Violation | None:
    """Return what is said of a rule of `custom_vjp` or `custom_jvp`, which JAX calls."""
    if _DERIVATIVES.search(function) is None or name_of(call) == function:
        return None
    return Violation(
        f"derivative rule {quoted(function, most=30)} has other parameters than JAX passes",
        help="write a forward rule with the parameters of the function, a backward rule as "
        "`bwd(saved, g)` after `nondiff_argnums`, a JVP rule as `jvp(primals, tangents)`",
    )
