"""JX441: a loop's body returns another carry than it takes, or its arrays do not fit."""

# Longer than most rules: a table of errors; how two carries differ is read off the message and put
# in words.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from jaxsight.meshes.divided import array_type
from jaxsight.rules.differences import (
    LeafDifference,
    TreeDifference,
    leaf_differences,
    public_dtype,
    shape_text,
    tree_difference,
    varying_cast,
)
from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import argument_of, name_of
from jaxsight.rules.wording import quoted

RULE = Rule(__name__, "Body of a loop returns another carry than it takes.")

_INDEX = re.compile(r"^loop_carry\[[12]\]")
"""Where a `fori_loop` keeps its carry: after the index, and the bound if that is traced."""
_WHY = "all iterations run the same compiled body, so the carry has one type"


ERRORS = ErrorTable(
    RULE, "TypeError", "ValueError", mapping=lambda error: "map" if error.name == "map" else "scan"
)


@ERRORS.explains(
    r"\w+(?: body)? function carry input and carry output must have (?:equal types|the same "
    r"pytree structure)"
)
def of_carry(error: Matched) -> Violation | None:
    function = error.name
    leaves = leaf_differences(error.message)
    tree = tree_difference(error.message)
    if leaves:
        leaf = leaves[0]
        paths = [_path(each.path, function) for each in leaves]
        others = ", ".join(_subject(path).removeprefix("carry ") for path in paths[1:4])
        return Violation(
            f"{_subject(paths[0])} is `{leaf.first}` at first, `{leaf.second}` after an iteration",
            help=_of_leaf(leaf, error.message, function),
            notes=((f"other leaves change, too: {others}",) if others else ()) + (_WHY,),
            data=(re.sub(r"^\w+", "", paths[0]), leaf.first, leaf.second),
        )
    if tree is None:
        return of_none(error.message)
    subject = _subject(_path(tree.path, function))
    return Violation(
        f"{subject} is {tree.first} at first, {tree.second} after an iteration",
        help=_of_tree(tree),
        notes=(_WHY,),
    )


def of_none(message: str) -> Violation | None:
    """Return what is said of a body that returns `None` for a carry that is one array."""
    if "PyTreeDef(None)" not in message.partition("output tree structure is")[2]:
        return None
    pair = message.startswith("scan")
    return Violation(
        "body of the loop returns None for its carry",
        help="return `(carry, y)`, the new carry first" if pair else "return the new carry",
        notes=(_WHY,),
    )


def _path(path: str, function: str) -> str:
    """Return a path without the tuple in which a `fori_loop` keeps index and carry."""
    named = _INDEX.sub("", path) if function == "fori_loop" else path
    return "" if named == "carry" else named


def _subject(path: str) -> str:
    if path.startswith("["):
        return quoted(f"carry{path}", most=30)
    return f"carry {quoted(path, most=24)}" if path else "carry"


def _of_leaf(leaf: LeafDifference, message: str, function: str) -> str:
    cast, _ = varying_cast(message)
    if cast:
        return f"apply `{cast}` to the initial value"
    if leaf.first.startswith("key<"):
        return (
            "carry one key, and unpack what `split` returns: `key, subkey = jax.random.split(key)`"
        )
    if leaf.types is None:
        return "return the carry with the types that it came with"
    before, after = leaf.types
    if before.shape == after.shape:
        first, last = public_dtype(after.dtype), public_dtype(before.dtype)
        return (
            f"start with the dtype of the result: `jnp.asarray(init, {first})`, or convert the "
            f"result: `.astype({last})`"
        )
    pairs = [*zip(before.shape, after.shape, strict=False)]
    changed = [(old, new) for old, new in pairs if old != new]
    same_rank = len(before.shape) == len(after.shape)
    if same_rank and len(changed) == 1 and 1 < changed[0][0] < changed[0][1]:
        collected = "collect items with `jax.lax.scan`"
        if function == "scan":
            collected = "return the items as the second output of the body"
        return f"allocate the full size and write `carry.at[i].set(item)`, or {collected}"
    start = f"start with shape {shape_text(after.shape)}"
    if not before.shape:
        start = f"start with `jnp.zeros({shape_text(after.shape)})` or another array of that shape"
    return (
        f"{start}, or return shape {shape_text(before.shape)}: index, sum or reshape what the body "
        "computes"
    )


def _of_tree(tree: TreeDifference) -> str:
    if tree.keys:
        return f"keep the same keys: start with {quoted(tree.keys)}, or do not add it to the carry"
    if tree.second == "None":
        return "return the new carry from the body"
    return "return the carry in the containers that it came in"


ERRORS.table(r"""
scan body(?: function)? output must be a pair, got (?P<type>[^\n]*?)\.?$
    body of `scan` returns {type:q}, not a pair
    help: return `(carry, y)`, or `(carry, None)` if iterations have no output
    note: `scan` stacks the second of the pair over all iterations
cond_fun must return a boolean scalar, but got (?:output type\(s\)
        )?\[?(?:ShapedArray\()?(?P<type>\w+(?:\[[\d,]*\])?)
    condition of `while_loop` is {type:q}, not `bool[]`
    help: reduce it to one truth value: `jnp.any(…)` or `jnp.all(…)`
scan got values? with different leading axis sizes: (?P<sizes>\d[\d, ]*)
    `{mapping}` maps over arrays with different leading axes: {sizes}
    help: move the axis that is mapped to the front: `jnp.moveaxis(x, axis, 0)`
    note: `{mapping}` maps over axis 0 of each array of `xs`
scan got values? with no leading axis to scan over: (?P<values>[^\n]*?,[^\n]*?)\.?$
    `scan` maps over {values:q}, which has no axis
    help: pass one array: `jnp.array([…])`; each item of a list is an array of its own
scan got values? with no leading axis to scan over: (?P<values>[^\n]*?)\.?$
    `scan` maps over {values:q}, which has no axis
    help: pass an array with one item for each iteration, such as `jnp.arange(n)`, or `None` and
        `length=n`
scan got `length` argument of (?P<length>\d+) which disagrees with leading axis sizes
        \[(?P<sizes>[\d, ]+)\]
    `length={length}` of `scan` differs from the leading axis: {sizes}
    help: omit `length=`, which is needed only without `xs`
scan got no values to scan over and `length` not provided
    `scan` has neither arrays to map over nor a length
    help: pass `length=n`, or an array with one item for each iteration
lower and upper arguments to fori_loop must have equal types, got (?P<lower>\w+) and (?P<upper>\w+)
    bounds of `fori_loop` are {lower} and {upper}
    help: make both integers of one dtype: `n // 2`, `.astype(jnp.int32)`
Arguments to fori_loop must be scalars or have integer types|lower and upper arguments to fori_loop
        must be
    bounds of `fori_loop` are not integers
    help: pass two integers, or arrays of shape `()`
The vector field inside `ODETerm` must return a pytree with the same structure as `y0`
    vector field of `ODETerm` returns another structure than `y0`
    help: return arrays of the same structure, as `jnp.stack([dx, dy])` for an array `y0`
    note: a list of arrays is a pytree of several arrays, not one array
""")


# The fix: begin a loop with the dtype that its body returns.

_INIT = {"scan": (1, "init"), "while_loop": (2, "init_val"), "fori_loop": (3, "init_val")}
"""Where the initial carry is among the arguments, and its name."""
_DTYPE_AT = {
    "jax.numpy.zeros": 1, "jax.numpy.ones": 1, "jax.numpy.full": 2, "jax.numpy.array": 1,
    "jax.numpy.asarray": 1,
}  # fmt: skip
"""Where functions that make arrays have their dtype."""
_ITEM = re.compile(r"\[(\d+)\]")


@RULE.fixes("an initial carry of the result's dtype (unsafe)")
def candidates(context: FixContext, data: tuple[str, str, str]) -> Iterator[Candidate]:
    """Yield the call with the initial value converted, if integers become floats.

    Args:
        context: the finding.
        data: the path of the leaf that changes, after the name of the parameter (`['loss']`, or
            empty for the whole carry), and its types before and after.
    """
    before, after = map(array_type, data[1:])
    if before is None or after is None or before.shape != after.shape:
        return
    if before.dtype[:3] not in ("int", "uin") or "float" not in after.dtype:
        return
    for call in context.find(ast.Call):
        at, name = _INIT.get(name_of(call), (0, ""))
        item = _item(argument_of(call, at, name) if name else None, data[0])
        if item is not None and context.jnp:
            dtype = public_dtype(after.dtype).replace("jnp", context.jnp)
            written = context.called(item.func) if isinstance(item, ast.Call) else ""
            given = None
            if isinstance(item, ast.Call) and written in _DTYPE_AT:
                given = argument_of(item, _DTYPE_AT[written], "dtype")
            text = f"{context.jnp}.asarray({context.text(item)}, {dtype})"
            edited, text = (item, text) if given is None else (given, dtype)
            yield context.replaced(edited, text, f"Begin with {after.dtype}", same=False)
            return


def _item(init: ast.expr | None, path: str) -> ast.expr | None:
    """Return the part of the initial carry at a path, if the carry is written there."""
    if init is None or not path:
        return init
    at = _ITEM.fullmatch(path)
    if at is None or not isinstance(init, ast.Tuple | ast.List) or int(at[1]) >= len(init.elts):
        return None
    return init.elts[int(at[1])]
