"""JX334: a PRNG key is used as an array of numbers, or something else as a key."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import islice

from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import name_of, unpacked
from jaxsight.rules.wording import quoted, short

RULE = Rule(__name__, "PRNG key used as numbers, or numbers as a PRNG key.")

_APART = (
    "leave keys out of arithmetic, optimizers and averages: keep them apart from the parameters, "
    "or filter by `jnp.issubdtype(x.dtype, jax.dtypes.prng_key)`"
)
_NUMBERS = "`jax.random.key_data(key)` returns its numbers"
_DTYPE = "a key has a dtype of its own, `key<fry>`, and no arithmetic"


ERRORS = ErrorTable(RULE, "TypeError", "ValueError", "IndexError", dtype_note=_DTYPE, apart=_APART)


@RULE.explains
def explain(error: RaisedError) -> Violation | None:
    """Recognize keys that are unpacked, then JAX's own errors."""
    return _of_unpacked(error) or ERRORS.explain(error)


def _of_unpacked(error: RaisedError) -> Violation | None:
    """Return what is said of a key, or the keys of `split`, unpacked into other names."""
    if (parts := unpacked(error.line)) is None:
        return None
    targets, value = parts
    if not re.match(r"iteration over a 0-d|too many values to|not enough values", error.message):
        return None
    names, source = len(targets), quoted(ast.unparse(value), most=30)
    if error.is_key(value) and error.rank(value) == 0:
        split = f"jax.random.split({ast.unparse(value)}, {names})"
        return Violation(
            f"{source} is one PRNG key, but unpacked into {names}",
            help=f"derive keys: `{short(split)}`",
            notes=(_DTYPE,),
        )
    if isinstance(value, ast.Call) and name_of(value) == "split" and len(value.args) == 1:
        split = f"{ast.unparse(value.func)}({ast.unparse(value.args[0])}, {names})"
        return Violation(
            f"{source} returns 2 keys, but is unpacked into {names}",
            help=f"pass the number of keys: `{short(split)}`",
        )
    return None


@ERRORS.explains(r"Too many indices: ")
def of_index(error: Matched) -> Violation | None:
    node = error.node
    if not isinstance(node, ast.Subscript) or not error.is_key(node.value):
        return None
    key, count = short(ast.unparse(node.value)), error.rank(node.value)
    what = f"keys of rank {count} as if they were" if count else "a PRNG key as if it were two"
    return Violation(
        f"{error.quoted()} indexes {what} numbers",
        help=f"take one key with one index for each axis: `{key}[0]`"
        if count
        else f"derive keys with `jax.random.split({key})` or `jax.random.fold_in`",
        notes=(_NUMBERS, _DTYPE),
    )


@ERRORS.explains(r"\w+ does not accept dtypes? [^\n]*key<\w+>")
def of_arithmetic(error: Matched) -> Violation:
    """Return what is said of a key in arithmetic, which `fold_in` replaces where it adds."""
    node, help, folded = error.node, _APART, None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = error.operand(node.left), error.operand(node.right)
        whole = (
            right.dtype[0] in "iu" if right is not None else isinstance(node.right, ast.Constant)
        )
        if left is None and whole:
            folded = f"jax.random.fold_in({ast.unparse(node.left)}, {ast.unparse(node.right)})"
            help = f"derive another key: `{short(folded)}`"
    message = f"{error.quoted()} computes with a PRNG key"
    return Violation(message, help=help, notes=(_DTYPE,), data=folded)


@ERRORS.explains(r"unexpected PRNG key type <class '|JAX encountered invalid PRNG key data: ")
def of_no_key(error: Matched) -> Violation:
    subject = f"{error.quoted()} has a first argument that is not a PRNG key"
    for argument in error.arguments[:1]:
        name = quoted(error.expression.partition("(")[0], most=30)
        given = quoted(ast.unparse(argument), most=24)
        subject = f"first argument of {name} is {given}, not a PRNG key"
    return Violation(
        subject,
        help="pass a key first: `jax.random.key(seed)`",
        notes=("functions of `jax.random` have no state: the key decides what they return",),
    )


ERRORS.table(r"""
Cannot convert_element_type from key<\w+> to (?P<dtype>\w+)
    {expression:q} converts a PRNG key to {dtype}
    help: take its numbers with `jax.random.key_data(key)`
    note: {dtype_note}
(?:Cannot interpret 'key<\w+>' as a data type|dtype=key<\w+> is not a valid dtype for JAX type
        promotion)
    {expression:q} computes with PRNG keys
    help: {apart}
    note: {dtype_note}
(?P<function>fold_in) accepts a scalar, but was given an array of ?shape (?P<shape>\([\d, ]*\))
    `{function}` gets numbers of shape {shape}, but takes one
    help: map over them: `jax.vmap(jax.random.fold_in, (None, 0))(key, numbers)`
.*was called on traced array with shape key<\w+>\[
    {expression:q} converts a PRNG key to a NumPy array
    help: take its numbers with `jax.random.key_data(key)`
    note: {dtype_note}
(?P<function>\w+) accepts a single key, but was given a key array of shape (?P<shape>\([\d, ]*\)) !=
        \(\)
    `{function}` gets keys of shape {shape}, but takes one key
    help: map over the keys: `jax.vmap(lambda key: jax.random.{function}(key, …))(keys)`; or unpack
        them: `key, subkey = jax.random.split(key)`
(?P<function>key|PRNGKey) accepts a scalar seed, but was given a PRNG
    `{function}` gets a PRNG key as its seed
    help: use the key as it is, or derive another key: `jax.random.fold_in(key, i)` or
        `jax.random.split(key)`
(?P<function>key|PRNGKey) accepts a scalar seed, but was given an array of ?shape (?P<shape>\([\d,
        ]*\))
    `{function}` gets seeds of shape {shape}, but takes one seed
    help: make a key from an integer, or map: `jax.vmap(jax.random.key)(seeds)`
""")


# The fix: derive another key with `fold_in`.


@RULE.fixes("`fold_in` for a key with an integer added to it (unsafe)")
def candidates(context: FixContext, folded: str) -> Iterator[Candidate]:
    """Yield `jax.random.fold_in(key, i)` for `key + i`."""
    for sum_ in islice(context.find(ast.BinOp), 1):
        text = context.spelled(folded)
        yield context.replaced(sum_, text, "Derive a key with `fold_in`", same=False)
