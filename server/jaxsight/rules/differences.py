"""Read how JAX says that two pytrees, or the types of their leaves, differ.

`lax.cond`, `lax.switch`, loops and custom derivatives name the parts that differ in the same form:
`_check_branch_outputs` of `jax/_src/lax/control_flow/conditionals.py`, `_check_carry_type` of
`loops.py` there, `equality_errors` of `jax/_src/tree_util.py` (JAX 0.8 to 0.12).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from jaxsight.meshes.divided import ArrayType, array_type
from jaxsight.rules.wording import cut, quoted

_TYPES = re.compile(
    r"^(?:  \* )?(?P<where>[^\n]*?) has type (?P<first>[^\s;]+?) but the corresponding [^\n]*? has "
    r"type (?P<second>[^\s;]+?)(?:, so the [^\n]*?)?[.;]?$",
    re.MULTILINE,
)
_TREES = re.compile(
    r"^(?:  \* )?(?P<where>[^\n]*?) is a (?P<first>[^\n]*?) but [^\n]*? is a (?P<second>[^\n]*?), "
    r"so (?P<why>[^\n]*?)[.;]?$",
    re.MULTILINE,
)
_PATH = re.compile(r"(?:at path|input carry component|input carry(?! at path)) (?P<path>\S[^\n]*)$")
_KEYS = re.compile(r"difference of key sets: \{([^}]*)\}")
_CLASS = re.compile(r"<class '(?:[\w.<>]+\.)?(\w+)'>")
_VARYING = re.compile(r"\{.*\}$")
_CAST = re.compile(
    r"applying `(jax\.lax\.p(?:cast|vary)\([^`]*\))`,? to the (?:output of (?P<whose>\w+))?"
)


@dataclass(frozen=True, slots=True)
class LeafDifference:
    """Two leaves whose types differ."""

    path: str
    """As JAX writes it: `['loss']` in a result, `state['loss']` in a carry; empty for all of it."""
    first: str
    second: str

    @property
    def types(self) -> tuple[ArrayType, ArrayType] | None:
        """Both types, without the mesh axes that they vary over."""
        first, second = (array_type(_VARYING.sub("", text)) for text in (self.first, self.second))
        return (first, second) if first is not None and second is not None else None


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """Two containers that differ, or a container and a leaf."""

    path: str
    first: str
    """`an array`, `None`, `a dict of 2 items`, `a tuple of length 2`."""
    second: str
    keys: str
    """The keys that only one of them has: `'a'`, or empty."""


def leaf_differences(message: str) -> list[LeafDifference]:
    """Return the leaves that differ, in JAX's order."""
    return [
        LeafDifference(_path(match["where"]), match["first"], match["second"])
        for match in _TYPES.finditer(message)
    ]


def tree_difference(message: str) -> TreeDifference | None:
    """Return the first containers that differ, in JAX's order."""
    if (match := _TREES.search(message)) is None:
        return None
    keys = _KEYS.search(match["why"])
    first, second = _container(match["first"]), _container(match["second"])
    return TreeDifference(_path(match["where"]), first, second, keys[1] if keys else "")


def varying_cast(message: str) -> tuple[str, str]:
    """Return the call that JAX proposes to make a value vary over a mesh axis, or nothing.

    Also return whose output it is for, as `true_fun`; empty for a carry.
    """
    match = _CAST.search(message)
    return (match[1].replace("(...", "(x"), match["whose"] or "") if match else ("", "")


def shape_text(shape: tuple[int, ...]) -> str:
    """Return a shape as Python writes it: `(8,)`."""
    return f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"


def public_dtype(dtype: str) -> str:
    """Return `jnp.float32` for a dtype as JAX prints it."""
    return f"jnp.{'bool_' if dtype == 'bool' else dtype}"


def at(path: str) -> str:
    """Return `` at `['loss']` `` for the path of a leaf, empty for the whole."""
    return f" at {quoted(path, most=24)}" if path else ""


def _path(where: str) -> str:
    match = _PATH.search(where)
    return match["path"].strip() if match else ""


def _container(text: str) -> str:
    """Return JAX's description of a container or leaf in a few words."""
    named = _CLASS.sub(r"\1", text)
    if "Tracer" in named or named in ("pytree leaf", "ArrayImpl", "ShapedArray"):
        return "an array"
    named = named.partition(" with pytree metadata")[0].replace("children", "items")
    named = named.replace("1 child", "1 item").replace(" with ", " of ")
    return "None" if named == "NoneType" else cut(f"a {named}", 30)
