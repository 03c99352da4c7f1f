"""JX332: a list, `None` or a string where JAX needs an array."""

# Longer than most rules: a table of eleven errors, of which six need the arguments of the call.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.failure_text import described_type
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.statements import written
from jaxsight.rules.wording import quoted, short

RULE = Rule(__name__, "List, `None` or string where JAX needs an array.")

_ARRAYS = re.compile(r"Tracer$|ArrayImpl$|^Array$")
_LITERALS = {"list": (ast.List, ast.ListComp), "tuple": (ast.Tuple,), "dict": (ast.Dict,)}
_LISTS = (ast.List, ast.Tuple, ast.ListComp)

ERRORS = ErrorTable(
    RULE,
    "TypeError",
    "ValueError",
    given=lambda error: described_type(error["type"]),
    call=lambda error: error.quoted("this call"),
)


@ERRORS.explains(
    r"(?P<function>[\w.]+) requires ndarray or scalar arguments, got <class '(?P<type>[^']+)'> "
    r"at position (?P<position>\d+)"
)
def of_argument(error: Matched) -> Violation:
    type, position = error["type"].rpartition(".")[2], int(error["position"])
    name = quoted(error.called or f"jnp.{error['function'].removeprefix('jnp.')}", most=30)
    source = _given(error.arguments, position, type)
    if type not in ("list", "tuple"):
        subject = f"argument {quoted(source, str(position + 1), most=24)} of {name}"
        return _without_array(subject, type, source)
    help = "make it an array with `jnp.array`, or `jnp.stack` for a list of arrays"
    text = error.expression.replace(source, f"jnp.array({source})", 1) if source else ""
    if source in error.expression and 0 < len(text) <= 60:
        help = f"make it an array: `{text}`"
    return Violation(
        f"{name} gets a {type}, not an array",
        help=help,
        notes=("`jax.numpy` converts no lists: each item would be an operation of its own",),
        data="argument",
    )


def _given(arguments: list[ast.expr], position: int, type: str) -> str:
    """Return the source of the argument that is not an array.

    Where a function of JAX passes on its arguments, they may stand elsewhere: a display of the type
    is looked for first.
    """
    displays = [each for each in arguments if isinstance(each, _LITERALS.get(type, ()))]
    if len(displays) == 1:
        return ast.unparse(displays[0])
    others = any(isinstance(each, sum(_LITERALS.values(), ())) for each in arguments)
    return ast.unparse(arguments[position]) if position < len(arguments) and not others else ""


def _without_array(subject: str, type: str, source: str) -> Violation:
    """Return what is said of a value that has no array in it."""
    name, given = short(source or "x"), described_type(type)
    notes = ("whether it is `None` is known while tracing",) if given == "None" else ()
    helps = {
        "NoneType": f"test it before, in Python: `if {name} is not None`",
        "list": f"make it an array: `jnp.array({name})`",
        "tuple": f"make it an array: `jnp.array({name})`",
        "dict": "map over its leaves: `jax.tree.map(lambda leaf: …, tree)`",
    }
    other = f"call it: `{name}(…)`" if given == "a function" else "use an array or a number"
    return Violation(
        f"{subject} is {given}, not an array", help=helps.get(type, other), notes=notes
    )


@ERRORS.explains(
    r"unsupported operand type\(s\) for (?P<operator>[^\s:]+): '(?P<first>[^']+)' and "
    r"'(?P<second>[^']+)'"
)
def of_operator(error: Matched) -> Violation | None:
    """Return what is said of an operator of an array with a list, `None` or a string."""
    types, operator = [error["first"], error["second"]], error["operator"]
    sources = [written(each) for each in error.operands]
    if "dict" in types:
        return _of_tree(operator, types, sources if len(sources) == 2 else ["a", "b"])
    are_arrays = [_ARRAYS.search(type) is not None for type in types]
    if sum(are_arrays) != 1:
        return None
    other = are_arrays.index(False)
    source = sources[other] if len(sources) == 2 else ""
    subject = f"operand {quoted(source, str(other + 1), most=24)} of `{operator}`"
    return _without_array(subject, types[other].rpartition(".")[2], source)


def _of_tree(operator: str, types: list[str], names: list[str]) -> Violation | None:
    """Return what is said of arithmetic with a `dict` of arrays."""
    if not all(type in ("dict", "int", "float") or _ARRAYS.search(type) for type in types):
        return None
    trees = [name for name, type in zip(names, types, strict=True) if type == "dict"]
    leaves = ("a", "b") if len(trees) == 2 else ("a",)
    left, right = (
        leaves[trees.index(name)] if type == "dict" else name
        for name, type in zip(names, types, strict=True)
    )
    mapped = f"lambda {', '.join(leaves)}: {left} {operator.split()[0]} {right}, {', '.join(trees)}"
    return Violation(
        f"operator `{operator}` of a `dict`, not an array",
        help=f"compute with its leaves: `{short(f'jax.tree.map({mapped})')}`",
        notes=("a pytree has no arithmetic: `jax.tree.map` applies a function to each array",),
    )


@ERRORS.explains(
    r"Error interpreting argument to <function (?P<function>[\w.]+)[^\n]*? as an abstract array\. "
    r"The problematic value is of type <class '(?P<type>[^']+)'>"
)
def of_library(error: Matched) -> Violation | None:
    """Return what is said of an argument of JAX's own jitted functions, such as `jnp.sin`."""
    root, _, name = error.called.partition(".")
    if root not in ("jnp", "jax", "lax", "jsp") or name.rpartition(".")[2] != error["function"]:
        return None
    return Violation(
        f"{error.quoted()} gets {described_type(error['type'])}, not an array",
        help="pass an array or a number: `jnp.arange(n)` for a `range`, `jnp.array(items)` for a "
        "list of numbers",
    )


@ERRORS.explains(r"Using a non-tuple sequence for multidimensional indexing is not allowed")
def of_index(error: Matched) -> Violation:
    help, data = "index with an array, or with a tuple for several axes", None
    match error.node:
        case ast.Subscript(value=array, slice=ast.List() as items):
            text = f"{ast.unparse(array)}[jnp.array({ast.unparse(items)})]"
            help, data = f"index with an array: `{short(text)}`", "index"
    return Violation(f"{error.quoted()} indexes with a list", help=help, data=data)


@ERRORS.explains(r"Zero-dimensional arrays cannot be concatenated")
def of_concatenate(error: Matched) -> Violation:
    arrays, function = error.arguments, quoted(error.called, "`jnp.concatenate`")
    if len(arrays) < 2 or isinstance(arrays[0], ast.List | ast.Tuple):
        help = "join scalars with `jnp.stack`"
        return Violation(f"{function} joins scalars, which have no axis", help=help)
    joined = f"[{', '.join(map(ast.unparse, arrays))}]"
    return Violation(
        f"{function} takes one sequence of arrays, not {len(arrays)} arrays",
        help=f"put them into a list: `{short(joined)}`",
        data="brackets",
    )


ERRORS.table(r"""
can't multiply sequence by non-int of type '(?P<type>[^']+)'
    {expression:q} multiplies a list or tuple, not an array
    help: make it an array with `jnp.array`; for a list of arrays
        `jax.tree.map(lambda x: …, arrays)`
    note: `*` of a list repeats its items
None is not a valid value for jnp\.array
    {expression:q} makes an array of `None`
    help: skip what is `None`, or use a number such as `jnp.nan` in its place
setting an array element with a sequence\. The requested array has an inhomogeneous shape
    {expression:q} makes an array of rows of different lengths
    help: pad the rows to one length, and keep a mask of what is valid
    note: an array has one size along each axis
object of type 'generator' has no len\(\)
    {expression:q} gets a generator, not arrays
    help: make it a list with brackets: `[… for … in …]`
Value '(?P<value>[^\n]*?)' with dtype <U\d+ is not a valid JAX array type
    {expression:q} makes an array of text
    help: encode text as integers before; a seed is an integer
(?:(?:Argument|Value) '[^\n]*?' (?:of|with) (?:type )?'?|Cannot interpret value of type )<class
        '(?P<type>[^']+)'>'? (?:is not a valid JAX|as an abstract array)
    {call} gets {given} where JAX needs an array
    help: pass arrays and numbers; bind the rest with `functools.partial` or a closure
""")


# The fix: make an array of a list.


@RULE.fixes("`jnp.array` around a list (unsafe)")
def candidates(context: FixContext, place: str) -> Iterator[Candidate]:
    """Yield the expression with an array in place of the list, or arrays in a list.

    Args:
        context: the finding.
        place: where the list is, `argument`, `index`, or `brackets` where arrays become its items.
    """
    if not context.jnp:
        return
    match place, context.node:
        case "brackets", ast.Call(args=[first, *_, last]):
            edits = (
                context.replace(first, f"[{context.text(first)}"),
                context.replace(last, f"{context.text(last)}]"),
            )
            yield Candidate("Put the arrays into a list", edits, same=False)
        case "index", ast.Subscript(slice=ast.List() as items):
            yield _array(context, items)
        case "argument", ast.Call(args=arguments):
            lists = (each for each in arguments if isinstance(each, _LISTS))
            yield from (_array(context, each) for each in islice(lists, 1))


def _array(context: FixContext, items: ast.expr) -> Candidate:
    text = f"{context.jnp}.array({context.text(items)})"
    return context.replaced(items, text, "Make an array of the list", same=False)
