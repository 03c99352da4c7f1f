"""JX447: trees that are mapped together have different structures."""

from __future__ import annotations

import re

from jaxsight.rules.error_table import ErrorTable, Matched
from jaxsight.rules.failure_text import described_type
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import quoted

RULE = Rule(__name__, "Trees that are mapped together differ in structure.")

_ONE_STRUCTURE = (
    "map over trees of one structure: make both from the same parameters, and compare "
    "`jax.tree.structure` of them"
)
_NONE = "`None` is a tree without leaves: `is_leaf=lambda x: x is None` makes it one"
_BEGINNING = r"pytree structure error: different {} at key path\n +[\w ]+?(?P<path>[\[.][^\n]*)?\n"
"""`_prefix_error` of jax/_src/tree_util.py, which names the function before the path."""

ERRORS = ErrorTable(RULE, "ValueError", one_structure=_ONE_STRUCTURE, none=_NONE)


def _differ(error: Matched, difference: str, *notes: str, help: str = _ONE_STRUCTURE) -> Violation:
    where = f" at {quoted(error['path'], most=30)}" if error["path"] else ""
    return Violation(f"trees differ{where}: {difference}", help=help, notes=notes)


@ERRORS.explains(
    _BEGINNING.format("types") + r".*?subtree of type\n +<class '(?P<first>[^\n]*?)'>\n.*?type\n +"
    r"<class '(?P<second>[^\n]*?)'>\.?$"
)
def of_types(error: Matched) -> Violation:
    first, second = described_type(error["first"]), described_type(error["second"])
    notes = (_NONE,) if "None" in (first, second) else ()
    return _differ(error, f"{first} in the first, {second} in another", *notes)


@ERRORS.explains(
    _BEGINNING.format(r"lengths of (?P<kind>\w+)")
    + r".*? of length (?P<first>\d+), but .*?of length (?P<second>\d+)"
)
def of_lengths(error: Matched) -> Violation:
    return _differ(
        error, f"a {error['kind']} of {error['first']} items, and one of {error['second']}"
    )


@ERRORS.explains(
    _BEGINNING.format("numbers of pytree children")
    + r".*?(?:symmetric difference on key sets is\n +(?P<keys>[^\n]+)|$)"
)
def of_keys(error: Matched) -> Violation:
    # JAX 0.10 writes `'b'`, later releases `['b']`.
    keys = quoted(", ".join(re.findall(r"[\w.]+", error["keys"])), "some keys", most=30)
    return _differ(error, f"only one has {keys}")


@ERRORS.explains(
    _BEGINNING.format("pytree metadata") + r".*?type\n +<class '(?:dict|collections\.\w+)'>\nwith "
    r"metadata\n +(?P<first>[^\n]+)\n.*?metadata\n +(?P<second>[^\n]+)\n"
)
def of_other_keys(error: Matched) -> Violation:
    """Return what is said of two `dict`s of one length: JAX calls their keys metadata."""
    first, second = (re.findall(r"[\w.]+", error[which]) for which in ("first", "second"))
    only = ", ".join(key for key in first if key not in second)
    other = ", ".join(key for key in second if key not in first)
    if not only or not other:
        return _differ(error, "keys of a `dict`")
    return _differ(error, f"one has {quoted(only, most=20)}, another {quoted(other, most=20)}")


@ERRORS.explains(_BEGINNING.format("pytree metadata") + r".*?type\n +<class '(?P<type>[^']+)'>")
def of_metadata(error: Matched) -> Violation:
    return _differ(
        error,
        f"static fields of {quoted(error['type'].rpartition('.')[2], most=24)}",
        "static fields are part of the structure: functions, names, sizes, or keys of a `dict`",
        help="make the static fields equal, or store what differs as arrays",
    )


ERRORS.table(r"""
Dict key mismatch; expected keys: \[(?P<keys>[^\]]*)\]
    trees differ: one has the keys {keys:q}, another has others
    help: {one_structure}
(?P<kind>Tuple|List) arity mismatch: (?P<second>\d+) != (?P<first>\d+)
    trees differ: {first} items in one, {second} in another
    help: {one_structure}
Custom node type mismatch: expected type: <class '(?P<type>[^']+)'>
    trees differ: one has a node {type:q}, another none there
    help: {one_structure}
    note: a module of Equinox is a node with its arrays as leaves, not a leaf
Expected (?P<kind>dict|list|tuple|named tuple|None|dataclass), got (?P<given>[^\n]*?)\.?$
    trees differ: one has a {kind} where another has {given:q24}
    help: {one_structure}
    note: {none}
""")
