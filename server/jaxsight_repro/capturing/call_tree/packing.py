"""Arguments and results as numbered values.

Values are known by identity as long as they live; they are held weakly, except the arrays that were
passed or captured, which are held until the outermost call has ended.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from jaxsight_repro.capturing.call_tree import records

if TYPE_CHECKING:  # JAX is not imported before the program imports it
    from jax.tree_util import PyTreeDef

    from jaxsight_source.compat.jaxpr_types import Aval

_NUMBERS = itertools.count(1)
"""The numbers of values: unique in the process."""

_NONE = records.Structure("none")

_SMALL = 4096
"""Bytes of an array that is held after its call has ended, a choice: more would keep what the
program frees; those that are written into a repro have as many (`emit.data.LARGEST_INLINE`)."""

NOTHING = object()
"""Stands for the function that a call has returned, if it returned none."""


class _Numbered(weakref.ref[object]):
    """A value that has a number."""

    __slots__ = ("ref",)
    ref: records.Ref


class Values:
    """The values of one tree."""

    def __init__(
        self, is_tracer: Callable[[object], bool], jax: ModuleType, opaque: tuple[type, ...] = ()
    ) -> None:
        self.avals: dict[int, Aval] = {}
        self.arrays: dict[int, object] = {}
        self.function_of: Callable[[object], int | None] = lambda value: None
        self._jax = jax
        self._is_tracer = is_tracer
        self._known: dict[int, _Numbered] = {}
        self._structures: dict[PyTreeDef, records.Structure] = {}
        self._metas: dict[str, list[object]] = {}
        self.opaque = opaque
        """The types of functions that are pytrees of what they captured."""
        self.made: object = NOTHING
        """The function that a call has just returned, which is a pytree, too."""
        self.array_type: type = jax.Array

    def forget(self) -> None:
        """Drop what recognizes values: the tree is complete, and later calls may refer to it."""
        self.function_of = lambda value: None
        self._known.clear()
        self._structures.clear()
        self.arrays = {
            number: array
            for number, array in self.arrays.items()
            if getattr(array, "nbytes", 0) <= _SMALL
        }

    def operand(self, value: object) -> records.Operand:
        """Return a leaf as an operand; arrays that are not known yet are captured."""
        known = self._known.get(id(value))
        if known is not None and known() is value:
            return known.ref
        if not self._is_tracer(value):
            if isinstance(value, self.opaque) or value is self.made:
                return self.define(value)
            if type(value).__name__ == "TypedNdArray":  # until JAX 0.9, of `jnp.ones`
                array = np.asarray(value)
                value = array.item() if getattr(value, "weak_type", False) else array
            if not isinstance(value, (self._jax.Array, np.ndarray)) or (
                isinstance(value, np.ndarray) and not value.ndim
            ):
                number = self.function_of(value)
                return records.PlainValue(value) if number is None else records.FunctionRef(number)
            captured = self.define(value)
            self.arrays[captured] = value
            return captured
        return self.define(value)

    def has_number(self, value: object) -> bool:
        """Return whether a value has a number."""
        known = self._known.get(id(value))
        return known is not None and known() is value

    def operands(self, args: Sequence[object]) -> tuple[records.Operand, ...]:
        """Return what a primitive is bound to, without rules of derivatives."""
        known = self._known
        found: list[records.Operand] = []
        for arg in args:
            numbered = known.get(id(arg))
            if numbered is not None and numbered() is arg:
                found.append(numbered.ref)
            elif type(arg).__name__ != "WrappedFun":
                found.append(self.operand(arg))
        return tuple(found)

    def define(self, value: object) -> records.Ref:
        """Return a new number for a value that was passed to, or returned by, a function."""
        numbered = _Numbered(value)
        numbered.ref = ref = next(_NUMBERS)
        self._known[id(value)] = numbered
        aval = getattr(value, "aval", None)
        if aval is not None:
            self.avals[ref] = aval
        return ref

    def result(self, value: object) -> records.Operand:
        """Return a leaf of a result: traced values and arrays get a new number."""
        if (
            self._is_tracer(value)
            or isinstance(value, (self._jax.Array, *self.opaque))
            or value is self.made
        ):
            return self.define(value)
        return self.operand(value)

    def packed(
        self, value: object, leaf: Callable[[object], records.Operand] | None = None
    ) -> records.Pytree:
        """Return a pytree of operands."""
        leaf = leaf or self.operand
        if self._is_tracer(value) or isinstance(value, (bool, int, float, str)):
            return records.Pytree(records.LEAF, (leaf(value),))
        node, leaves = self._flattened(value)
        return records.Pytree(node, tuple(map(leaf, leaves)))

    def arguments(
        self,
        args: Sequence[object],
        kwargs: Mapping[str, object],
        leaf: Callable[[object], records.Operand] | None = None,
    ) -> records.Arguments:
        """Return the arguments of a call."""
        return records.Arguments(
            tuple(self.packed(arg, leaf) for arg in args),
            {name: self.packed(arg, leaf) for name, arg in kwargs.items()},
        )

    def _flattened(self, value: object) -> tuple[records.Structure, list[object]]:
        tree_util = self._jax.tree_util
        if self.function_of(value) is not None:
            return records.LEAF, [value]

        opaque, made, known = self.opaque, self.made, self._known

        def is_opaque(part: object) -> bool:
            return (
                isinstance(part, opaque)
                or part is made
                or (id(part) in known and self.has_number(part))
            )

        leaves, tree = tree_util.tree_flatten(value, is_opaque)
        if tree_util.treedef_is_leaf(tree) and len(leaves) == 1 and leaves[0] is value:
            return records.LEAF, leaves
        structure: records.Structure | None = None
        with contextlib.suppress(Exception):  # static parts may be unhashable, or compare as arrays
            structure = self._structures.get(tree)
        if structure is not None:
            return structure, leaves
        paths: list[tuple[object, ...]] | None = None

        def keys_at(start: int, depth: int) -> object:
            nonlocal paths
            if paths is None:
                paths = [path for path, _ in tree_util.tree_flatten_with_path(value, is_opaque)[0]]
            return paths[start][depth] if depth < len(paths[start]) else None

        structure = self._node(tree, 0, 0, keys_at)
        with contextlib.suppress(Exception):
            self._structures[tree] = structure
        return structure, leaves

    def _node(
        self, tree: PyTreeDef, start: int, depth: int, keys_at: Callable[[int, int], object]
    ) -> records.Structure:
        data = tree.node_data()
        if data is None:
            return records.LEAF if tree.num_leaves else _NONE
        kind, static = data
        children, starts = [], []
        for child in tree.children():
            starts.append(start)
            children.append(self._node(child, start, depth + 1, keys_at))
            start += child.num_leaves
        nodes = tuple(children)
        if kind is type(None):
            return _NONE
        if kind in (tuple, list):
            return records.Structure(kind.__name__, nodes)
        if issubclass(kind, dict):
            keys = static if isinstance(static, (list, tuple)) else ()
            keys = static[1] if kind.__name__ == "defaultdict" and len(static) == 2 else keys
            return records.Structure("dict", nodes, kind.__name__, tuple(keys))
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return records.Structure("named", nodes, kind.__name__, tuple(kind._fields))
        names = tuple(
            _field(keys_at(at, depth) if node.leaves else None, index)
            for index, (at, node) in enumerate(zip(starts, nodes, strict=True))
        )
        if len(set(names)) < len(names):
            names = tuple(f"field_{index}" for index in range(len(names)))
        return records.Structure(
            "class", nodes, kind.__name__, names, self._meta(kind.__name__, static)
        )

    def _meta(self, name: str, static: object) -> int:
        """Return a number for the static part of a class, equal for equal parts."""
        metas = self._metas.setdefault(name, [])
        for index, meta in enumerate(metas):
            try:
                if bool(meta == static):
                    return index
            except Exception:  # noqa: BLE001 - static parts may compare as arrays do
                if meta is static:
                    return index
        metas.append(static)
        return len(metas) - 1


def _field(key: object, index: int) -> str:
    name = getattr(key, "name", None)
    if not isinstance(name, str):
        name = getattr(key, "key", None)
    if isinstance(name, str) and name.isidentifier():
        return name.lstrip("_") or f"field_{index}"
    return f"field_{index}"
