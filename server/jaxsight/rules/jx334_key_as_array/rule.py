"""JX334: a PRNG key is used as an array of numbers, or something else as a key."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from jaxsight.rules.error_table import ErrorTable
from jaxsight.rules.failure_text import operand
from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.operands import is_key, rank
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import name_of, parsed, parsed_call, unpacked
from jaxsight.rules.wording import quoted, short
from jaxsight.wire.observations import Failure

RULE = Rule(__name__, "PRNG key used as numbers, or numbers as a PRNG key.")

_APART = (
    "leave keys out of arithmetic, optimizers and averages: keep them apart from the parameters, "
    "or filter by `jnp.issubdtype(x.dtype, jax.dtypes.prng_key)`"
)
_NUMBERS = "`jax.random.key_data(key)` returns its numbers"
_DTYPE = "a key has a dtype of its own, `key<fry>`, and no arithmetic"


@dataclass(frozen=True, slots=True)
class FoldedKey:
    """The derived key that is meant, for the fix."""

    text: str


ERRORS = ErrorTable("TypeError", "ValueError", "IndexError")


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize keys that are unpacked, then JAX's own errors."""
    return of_unpacked(failure, expression, line) or ERRORS.explain(failure, expression, line)


def of_unpacked(failure: Failure, expression: str, line: str) -> Violation | None:
    """Return what is said of a key, or the keys of `split`, unpacked into other names."""
    if (parts := unpacked(line)) is None:
        return None
    targets, value = parts
    if not re.match(r"iteration over a 0-d|too many values to|not enough values", failure.message):
        return None
    names, source = len(targets), quoted(ast.unparse(value), most=30)
    if is_key(failure, value) and rank(failure, value) == 0:
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
def of_index(match: re.Match[str], failure: Failure, expression: str) -> Violation | None:
    node = parsed(expression)
    if not isinstance(node, ast.Subscript) or not is_key(failure, node.value):
        return None
    key, count = ast.unparse(node.value), rank(failure, node.value)
    if count:
        return Violation(
            f"{quoted(expression)} indexes keys of rank {count} as if they were numbers",
            help=f"take one key with one index for each axis: `{short(key)}[0]`",
            notes=(_NUMBERS, _DTYPE),
        )
    return Violation(
        f"{quoted(expression)} indexes a PRNG key as if it were two numbers",
        help=f"derive keys with `jax.random.split({short(key)})` or `jax.random.fold_in`",
        notes=(_NUMBERS, _DTYPE),
    )


@ERRORS.explains(r"\w+ does not accept dtypes? [^\n]*key<\w+>")
def of_arithmetic(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    """Return what is said of a key in arithmetic, which `fold_in` replaces where it adds."""
    node, help, data = parsed(expression), _APART, None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = operand(failure, node.left), operand(failure, node.right)
        whole = (
            right.dtype[0] in "iu" if right is not None else isinstance(node.right, ast.Constant)
        )
        if left is None and whole:
            folded = f"jax.random.fold_in({ast.unparse(node.left)}, {ast.unparse(node.right)})"
            help, data = f"derive another key: `{short(folded)}`", FoldedKey(folded)
    return Violation(
        f"{quoted(expression)} computes with a PRNG key",
        help=help,
        notes=(_DTYPE,),
        data=data,
    )


@ERRORS.explains(r"unexpected PRNG key type <class '|JAX encountered invalid PRNG key data: ")
def of_no_key(match: re.Match[str], failure: Failure, expression: str) -> Violation:
    call = parsed_call(expression)
    subject = f"{quoted(expression)} has a first argument that is not a PRNG key"
    if call is not None and call.args:
        name = quoted(expression.partition("(")[0], most=30)
        given = quoted(ast.unparse(call.args[0]), most=24)
        subject = f"first argument of {name} is {given}, not a PRNG key"
    return Violation(
        subject,
        help="pass a key first: `jax.random.key(seed)`",
        notes=("functions of `jax.random` have no state: the key decides what they return",),
    )


ERRORS.says(
    r"Cannot convert_element_type from key<\w+> to (?P<dtype>\w+)",
    "{expression:q} converts a PRNG key to {dtype}",
    help="take its numbers with `jax.random.key_data(key)`",
    note=_DTYPE,
)
ERRORS.says(
    r"(?:Cannot interpret 'key<\w+>' as a data type|dtype=key<\w+> is not a valid dtype for JAX "
    r"type promotion)",
    "{expression:q} computes with PRNG keys",
    help=_APART,
    note=_DTYPE,
)
ERRORS.table(r"""
(?P<function>fold_in) accepts a scalar, but was given an array of ?shape (?P<shape>\([\d, ]*\))
    `{function}` gets numbers of shape {shape}, but takes one
    help: map over them: `jax.vmap(jax.random.fold_in, (None, 0))(key, numbers)`
""")
ERRORS.says(
    r".*was called on traced array with shape key<\w+>\[",
    "{expression:q} converts a PRNG key to a NumPy array",
    help="take its numbers with `jax.random.key_data(key)`",
    note=_DTYPE,
)
ERRORS.table(r"""
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
def candidates(context: FixContext, folded: FoldedKey) -> Iterator[Candidate]:
    """Yield `jax.random.fold_in(key, i)` for `key + i`."""
    for sum_ in islice(context.find(ast.BinOp), 1):
        edit = context.replace(sum_, context.spelled(folded.text))
        yield Candidate("Derive a key with `fold_in`", (edit,), same=False)
