"""JX332: a list, `None` or a string where JAX needs an array."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from jaxsight.rules.error_table import ErrorTable
from jaxsight.rules.failure_text import described_type, jax_page
from jaxsight.rules.operands import sources
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import dotted, parsed, parsed_call
from jaxsight.rules.text.statements import written
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted, short
from jaxsight.wire.observations import Failure

RULE = Rule(
    "JX332",
    "not-an-array",
    "List, `None` or string where JAX needs an array.",
)

_ARRAYS = re.compile(r"Tracer$|ArrayImpl$|^Array$")
_SEQUENCES = ("list", "tuple")


@dataclass(frozen=True, slots=True)
class ArrayOfItems:
    """Where the list is that becomes an array, for the fix."""

    place: str
    """`argument`, `index`, or `brackets` where arrays become items of a list."""


ERRORS = ErrorTable("TypeError", "ValueError")
RULE.explains(ERRORS.explain)


@ERRORS.explains(
    r"(?P<function>[\w.]+) requires ndarray or scalar arguments, got <class '(?P<type>[^']+)'> "
    r"at position (?P<position>\d+)"
)
def of_argument(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    type, position = match["type"].rpartition(".")[2], int(match["position"])
    call = parsed_call(expression)
    function = dotted(call.func) if call is not None else ""
    name = quoted(function or f"jnp.{match['function'].removeprefix('jnp.')}", most=30)
    given = call.args[position] if call is not None and position < len(call.args) else None
    source = ast.unparse(given) if given is not None else ""
    if type in _SEQUENCES:
        help = "make it an array with `jnp.array`, or `jnp.stack` for a list of arrays"
        text = expression.replace(source, f"jnp.array({source})", 1) if source else ""
        if source in expression and 0 < len(text) <= 60:
            help = f"make it an array: `{text}`"
        return Violation(
            f"{name} gets a {type}, not an array",
            help=help,
            notes=("`jax.numpy` converts no lists: each item would be an operation of its own",),
            data=ArrayOfItems("argument"),
        )
    subject = f"argument {quoted(source, str(position + 1), most=24)} of {name}"
    return _without_array(subject, type, source)


def _without_array(subject: str, type: str, source: str) -> Violation:
    """Return what is said of a value that has no array in it."""
    name, help = short(source or "x"), "use an array or a number"
    notes: tuple[str, ...] = ()
    if type == "NoneType":
        help = f"test it before, in Python: `if {name} is not None`"
        notes = ("whether it is `None` is known while tracing",)
    elif type in _SEQUENCES:
        help = f"make it an array: `jnp.array({name})`"
    elif type == "dict":
        help = "map over its leaves: `jax.tree.map(lambda leaf: …, tree)`"
    elif described_type(type) == "a function":
        help = f"call it: `{name}(…)`"
    return Violation(f"{subject} is {described_type(type)}, not an array", help=help, notes=notes)


@ERRORS.explains(
    r"unsupported operand type\(s\) for (?P<operator>[^\s:]+): '(?P<first>[^']+)' and "
    r"'(?P<second>[^']+)'"
)
def of_operator(match: re.Match[str], failure: Failure, expression: str) -> Violation | None:
    """Return what is said of an operator of an array with a list, `None` or a string."""
    types = [match["first"], match["second"]]
    are_arrays = [_ARRAYS.search(type) is not None for type in types]
    if sum(are_arrays) != 1:
        return None
    other = are_arrays.index(False)
    operands = sources(expression)
    source = written(operands[other]) if len(operands) == 2 else ""
    subject = f"operand {quoted(source, str(other + 1), most=24)} of `{match['operator']}`"
    return _without_array(subject, types[other].rpartition(".")[2], source)


@ERRORS.explains(r"Using a non-tuple sequence for multidimensional indexing is not allowed")
def of_index(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    node = parsed(expression)
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.List)):
        help = "index with an array, or with a tuple for several axes"
        return Violation(f"{quoted(expression)} indexes with a list", help=help)
    text = f"{ast.unparse(node.value)}[jnp.array({ast.unparse(node.slice)})]"
    return Violation(
        f"{quoted(expression)} indexes with a list",
        help=f"index with an array: `{short(text)}`",
        data=ArrayOfItems("index"),
    )


@ERRORS.explains(r"Zero-dimensional arrays cannot be concatenated")
def of_concatenate(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    call = parsed_call(expression)
    arrays = call.args if call is not None else []
    function = quoted(dotted(call.func) if call is not None else "", "`jnp.concatenate`")
    if len(arrays) < 2 or isinstance(arrays[0], ast.List | ast.Tuple):
        help = "join scalars with `jnp.stack`"
        return Violation(f"{function} joins scalars, which have no axis", help=help)
    joined = f"[{', '.join(map(ast.unparse, arrays))}]"
    return Violation(
        f"{function} takes one sequence of arrays, not {len(arrays)} arrays",
        help=f"put them into a list: `{short(joined)}`",
        data=ArrayOfItems("brackets"),
    )


@ERRORS.explains(
    r"(?:(?:Argument|Value) '[^\n]*?' (?:of|with) (?:type )?'?|Cannot interpret value of type )"
    r"<class '(?P<type>[^']+)'>'? (?:is not a valid JAX|as an abstract array)"
)
def of_value(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    given = described_type(match["type"])
    return Violation(
        f"{quoted(expression, 'this call')} gets {given} where JAX needs an array",
        help="pass arrays and numbers; bind the rest with `functools.partial` or a closure",
        url=jax_page(failure),
    )
