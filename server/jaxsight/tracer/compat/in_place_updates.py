"""JAX arrays that can be changed in place, as those of NumPy can, for as long as a context lasts.

A function that assigns to `x[i]` was written for such arrays: run with them, it computes what its
author meant. Holds for JAX 0.8 to 0.12. Private API used: `jax._src.array.ArrayImpl` with
`_replace_with` and `_npy_value`, `jax._src.core.Tracer`, the class of `x.at`.

References (`jax.new_ref`) are changed in place by JAX itself. Private API used: the `WriteEffect`
and `AccumEffect` of `state.types`, and the input that they name: a variable (`input`), or before
0.10 a position (`input_index`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import core
from jax._src.array import ArrayImpl
from jax._src.numpy.array_methods import _IndexUpdateHelper
from jax._src.state import types

from jaxsight.tracer.compat.replacing import replaced
from jaxsight_source.compat.staging import open_jaxpr

_MOST_VIEWS = 10_000
"""Views that are kept, each with its array; a function that makes more cannot be compared."""


@contextlib.contextmanager
def changeable() -> Iterator[None]:
    """Let `x[i] = y` change arrays, and views of them (`row = x[0]`), inside the context.

    So does `x.at[i] = y`, and what `np.asarray` makes of an array can be changed too.

    At the end all arrays are what they were at the beginning.
    """
    changes = _Changes()
    changes.get, as_array = ArrayImpl.__getitem__, np.asarray

    def copied(value: object, *args: Any, **kwargs: Any) -> object:
        converted = as_array(value, *args, **kwargs)
        return converted.copy() if isinstance(value, ArrayImpl) else converted

    # Functions, as bound methods would not get the array.
    patches: list[tuple[object, str, object]] = [
        (ArrayImpl, "__setitem__", lambda array, index, value: changes.change(array, index, value)),
        (ArrayImpl, "__getitem__", lambda array, index: changes.view(array, index)),
        (core.Tracer, "__setitem__", _change_tracer),
        (_IndexUpdateHelper, "__setitem__", _change_at),
        (np, "asarray", copied),
    ]
    try:
        with replaced(*patches):
            yield
    finally:
        changes.restore()


_View = tuple[Any, object, object]
"""The array that it is a view of, the index, and the view."""


@dataclass(slots=True, eq=False)
class _Changes:
    """What was changed, and which arrays are views of which."""

    get: Any = None
    _views: list[_View] = field(default_factory=list)
    _originals: dict[int, tuple[object, object]] = field(default_factory=dict)

    def view(self, array: object, index: object) -> object:
        """Return `array[index]`, which is a view where NumPy's would be one."""
        element = self.get(array, index)
        is_new = element is not array and isinstance(element, ArrayImpl)
        if is_new and element.ndim and _is_basic(index):
            if len(self._views) >= _MOST_VIEWS:
                raise TypeError("too many slices to follow")
            self._views.append((array, index, element))
        return element

    def change(self, array: Any, index: object, value: object) -> None:
        """Assign to items of an array, of what it is a view of, and of its views."""
        self._replace(array, array.at[index].set(value), from_view=None)

    def _replace(self, array: object, new: object, from_view: _View | None) -> None:
        if new is array:
            return
        if not isinstance(new, ArrayImpl):
            raise TypeError("a traced value cannot be stored in a concrete array")
        # Keep the array alive for its id, and a copy, as its buffer is replaced.
        if id(array) not in self._originals:
            self._originals[id(array)] = array, jnp.array(array, copy=True)
        _overwrite(array, new)
        for view in self._views:
            # The change came from this view: going back would never end.
            if view is from_view:
                continue
            base, index, element = view
            if element is array:
                self._replace(base, base.at[index].set(array), view)
            elif base is array:
                self._replace(element, self.get(array, index), view)

    def restore(self) -> None:
        """Give all changed arrays their first contents again."""
        for array, contents in self._originals.values():
            _overwrite(array, contents)


def _overwrite(array: Any, new: object) -> None:
    array._replace_with(new)
    # The cached NumPy copy, which `_value` returns: it must not be the old one.
    array._npy_value = np.array(new)


def _is_basic(index: object) -> bool:
    """Whether NumPy returns a view for an index: integers, slices, `...` and `None`."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is ... or isinstance(part, int | slice) for part in parts)


def _change_at(at: Any, index: object, value: object) -> None:
    """Assign to items of the array for `x.at[i] = y`."""
    at.array[index] = value


def _change_tracer(tracer: Any, index: Any, value: Any) -> None:
    """Assign to items of a value under `vmap` or `grad`: it becomes the updated one."""
    new = tracer.at[index].set(value)
    if type(new) is not type(tracer) or not isinstance(new, jax.core.Tracer):
        raise TypeError("a traced value cannot be stored in this one")
    # The user's variable holds this tracer: it can only become the new one by its slots.
    for cls in type(tracer).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if not slot.startswith("__") and hasattr(new, slot):
                setattr(tracer, slot, getattr(new, slot))


def is_ref(value: object) -> bool:
    """Return whether a value is a reference to a concrete array."""
    kind = type(value)
    return issubclass(kind, jax.ref.Ref) and not issubclass(kind, jax.core.Tracer)


def written_refs(jaxpr: object) -> Iterator[int]:
    """Yield the positions of the references that a jaxpr writes to.

    Positions count captured arrays first, then inputs.
    """
    opened = open_jaxpr(jaxpr)
    variables: list[object] = [*opened.constvars, *opened.invars]
    places = set()
    for effect in opened.effects:
        if isinstance(effect, types.WriteEffect | types.AccumEffect):
            reference: object = getattr(effect, "input", None)
            if reference is None:
                reference = vars(effect)["input_index"]
            places.add(reference if isinstance(reference, int) else variables.index(reference))
    yield from sorted(places)
