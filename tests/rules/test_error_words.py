"""JAX's words of several releases are recognized, and said in a clause that names what is wrong."""

from __future__ import annotations

import re

import pytest

from jaxsight.rules.error_table import ErrorTable
from jaxsight.rules.explain_failure import explain
from jaxsight.rules.raised import RaisedError
from jaxsight.rules.rule import Rule, Violation
from jaxsight.wire.observations import Failure

TYPES = (("x", "f32[8,4]"), ("bias", "f32[8]"), ("w", "f32[16,64]"), ("q", "f32[8,64]"))


def failure(message: str, type: str = "TypeError") -> Failure:
    return Failure("trace", type, message, bases=("Exception",), operands=TYPES)


def said(message: str, expression: str, type: str = "TypeError") -> tuple[str, Violation]:
    rule, violation = explain(failure(message, type), expression, expression)
    return rule.code, violation


@pytest.mark.parametrize(
    ("message", "expression", "code", "words"),
    [
        (
            "add got incompatible shapes for broadcasting: (8, 4), (8,).",
            "x + bias",
            "JX330",
            "cannot broadcast `x` (8, 4) and `bias` (8,): axis -1 is 4 and 8",
        ),
        (
            "operands could not be broadcast together with shapes (8,4) (8,) ",
            "x + bias",
            "JX330",
            "cannot broadcast `x` (8, 4) and `bias` (8,): axis -1 is 4 and 8",
        ),
        (
            "Incompatible shapes for broadcasting: (8,) and requested shape (4,)",
            "x.at[0].set(bias)",
            "JX330",
            "cannot write `bias` of shape (8,) to `x.at[0]` of shape (4,)",
        ),
        (
            (
                "Incompatible types for broadcasting: input type=float32[8] and requested "
                "type=float32[4]"
            ),
            "jnp.broadcast_to(bias, (4,))",
            "JX330",
            "cannot broadcast `bias` of shape (8,) to (4,)",
        ),
        (
            (
                "dot_general requires contracting dimensions to have the same shape, got (64,) and "
                "(16,)."
            ),
            "q @ w",
            "JX330",
            "product of `q` (8, 64) and `w` (16, 64) contracts axes of 64 and 16",
        ),
        (
            "Too many indices: 1-dimensional array indexed with 2 regular indices.",
            "bias[:, 0]",
            "JX330",
            "`bias[:, 0]` indexes 2 axes of an array of rank 1",
        ),
        (
            "All input arrays must have the same shape.",
            "jnp.stack([x, bias])",
            "JX330",
            "cannot stack arrays of different shapes: (8, 4), (8,)",
        ),
        (
            (
                "Custom VJP bwd rule must produce an output with the same shape/dtypes as the args "
                "tuple of the primal function, but at output[0] the bwd rule produced an output of "
                "shape/dtype float32[10] corresponding to an input of shape/dtype float32[], so the "
                "shapes do not match"
            ),
            "jax.grad(f)(x)",
            "JX446",
            "backward rule returns `float32[10]` for argument 0, which is `float32[]`",
        ),
        (
            "vmap has mapped output but out_axes is None",
            "jax.vmap(f, out_axes=None)(x)",
            "JX442",
            "`out_axes` of `vmap` is `None`, but the result is mapped",
        ),
        (
            (
                "vmap in_axes specification must be a tree prefix of the corresponding value, got "
                "specification (0, 0) for value tree PyTreeDef((*, *, *))."
            ),
            "jax.vmap(f, (0, 0))(x, x, x)",
            "JX442",
            "`in_axes` of `vmap` has another structure than what it is for",
        ),
        (
            "scan body function output must be a pair, got ShapedArray(float32[]).",
            "jax.lax.scan(f, 0.0, x)",
            "JX441",
            "body of `scan` returns `ShapedArray(float32[])`, not a pair",
        ),
        (
            "Dict key mismatch; expected keys: ['b', 'w']; dict: {'w': Traced}.",
            "jax.tree.map(f, a, b)",
            "JX447",
            "trees differ: one has the keys `'b', 'w'`, another has others",
        ),
        (
            "Pred type must be either boolean or number, got <function g>.",
            "jax.lax.cond(g, a, b, x)",
            "JX440",
            "predicate `g` is a function, not its result",
        ),
    ],
)
def test_words_of_several_releases_are_recognized(
    message: str, expression: str, code: str, words: str
) -> None:
    type = "IndexError" if "indices" in message else "TypeError"
    type = "ValueError" if message.startswith(("vmap", "Dict")) else type
    found, violation = said(message, expression, type)
    assert (found, violation.message) == (code, words)
    assert violation.help


def test_words_of_users_are_their_own() -> None:
    for message, type in (
        ("Pred must be a scalar, got 3 of shape (3,).", "app.PredicateError"),
        ("expected x to have the same shape, got (64,) and (32,)", "ValueError"),
        ("my scan body output must be a pair, got 3", "TypeError"),
        ("tree has different lengths of list", "ValueError"),
    ):
        assert said(message, "f(x)", type)[0] == "JX400"


def test_long_types_and_names_are_cut_and_told_in_a_note() -> None:
    long = "float32[128,128,128,128,128]"
    name = "a_function_with_a_name_that_is_very_long"
    path = "['encoder']['layers']['attention']['kernel']"
    message = (
        "cond branches must have equal output types but they differ.\n\n"
        f"true_fun is {name}_1 at model.py:3\nfalse_fun is {name}_2 at model.py:9\n\n"
        f"The output of true_fun at path {path} has type {long} but the corresponding output of "
        f"false_fun has type {long.replace('float', 'int')}, so the dtypes do not match.\n"
    )
    code, violation = said(message, f"jax.lax.cond(x[0, 0] > 0, {name}_1, {name}_2, x)")
    assert code == "JX440"
    assert 90 < len(violation.message) <= 100
    assert violation.notes[0].startswith(violation.message[:-1])
    assert long in violation.notes[0]


def test_the_first_row_that_fits_is_taken_and_templates_quote() -> None:
    table = ErrorTable(Rule("jx999_table", "Table."), "ValueError")
    table.table(r"""
bad (?P<what>\w+)
    {what:q3} is bad in {expression:q}
    help: fix {what}
bad
    never
""")
    found = table.explain(RaisedError(failure("bad names", "ValueError"), "f(x)", ""))
    assert found is not None
    assert (found.message, found.help) == ("`na…` is bad in `f(x)`", "fix names")
    assert table.explain(RaisedError(failure("bad names", "KeyError"), "f(x)", "")) is None
    assert table.explain(RaisedError(failure("a bad name", "ValueError"), "f(x)", "")) is None


def test_no_message_or_help_is_longer_than_what_an_editor_shows() -> None:
    """The longest plausible parts of a message still leave a clause."""
    shape = "(1024, 1024, 1024)"
    expression = "self.encoder.layers[0].attention.kernel + self.encoder.layers[1].attention.bias"
    for message in (
        f"Incompatible shapes for broadcasting: shapes=[{shape}, (512, 1024, 7)]",
        f"Incompatible shapes for broadcasting: {shape} and requested shape (512, 1024, 7)",
        (
            f"transpose permutation isn't a permutation of operand dimensions, got permutation "
            f"(2, 1, 0, 3) for operand shape {shape}."
        ),
        "Size of label 'j' for operand 1 (1024) does not match previous terms (4096).",
    ):
        _, violation = explain(failure(message, "ValueError"), expression, expression)
        assert len(violation.message) <= 100
        assert not re.search(r"\.$|0x[0-9a-f]+", violation.message)
