"""What functions return whose data is not there: the usual form of known loaders."""

from __future__ import annotations

import re
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.tracer.dry_runs.values.partial_types import PartialType
from jaxsight.tracer.dry_runs.values.unknown import Unknown, is_unknown, numbers, of_type, typed
from jaxsight.tracer.importing import placeholders

_OF_JAX = re.compile(r"jax(?:\._src)?\.(?:numpy|nn|lax|scipy|image|ops)\b")
"""Modules of JAX whose functions take arrays and return arrays."""
_READERS = {"fromfile": 1, "frombuffer": 1, "memmap": 1, "loadtxt": 2, "genfromtxt": 2}
"""Functions of NumPy that read numbers, with the most axes of what they return."""
_KEEPING = frozenset({"copy", "dropna", "drop_duplicates", "fillna", "sample", "reset_index"})
"""Methods of pandas' frames that return frames with the same columns."""


def of_missing(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> object:
    """Return the result of a function that is not there, or whose data is not."""
    *modules, name = placeholders.name_of(function)
    if modules[:1] == ["numpy"] and name in _READERS:
        return _read(name, args, kwargs)
    if modules[:1] == ["pandas"] and name.startswith("read_"):
        return PandasTable(None)
    # It may be a method of data, as in `project_data.images.reshape(-1, 784)`.
    return getattr(Unknown(), name)(*args, **kwargs) if name else Unknown()


def of_arrays(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
) -> object:
    """Return the result of a function for unknown arrays, and of NumPy's for any without values.

    It is `None` for all other calls.
    """
    *modules, name = placeholders.name_of(function)
    is_numpy = modules[:1] == ["numpy"]
    if not is_numpy and not _OF_JAX.match(".".join(modules)):
        return None
    leaves = jax.tree.leaves((args, kwargs), is_leaf=is_unknown)
    needs_unknown = any(map(is_unknown, leaves))
    if needs_unknown and is_numpy and name in _READERS:
        return _read(name, args, kwargs)
    # `print` stands for what JAX lacks.
    function = getattr(jnp, name, print) if is_numpy else function
    # Functions of functions call code of the user; a dtype is called, too.
    if function is print or any(callable(each) and not _is_dtype(each) for each in leaves):
        return None
    if needs_unknown:
        return typed(function, args, kwargs)
    if not is_numpy or not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return None
    try:
        return function(*args, **kwargs)
    except Exception:  # noqa: BLE001 - NumPy has another function of this name
        return None


def _read(name: str, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """Return the numbers that a function of NumPy would read."""
    default = np.uint8 if name == "memmap" else float
    given = kwargs.get("dtype", args[1] if len(args) > 1 else default)
    try:
        dtype = jax.dtypes.canonicalize_dtype(given)
    except TypeError:  # it is unknown, or of texts
        return Unknown()
    if given is None or {"shape", "names"} & kwargs.keys():
        return Unknown()
    if _READERS[name] == 1:
        return of_type(PartialType((None,), dtype), name, *map(str, args[:1]), dtype)
    return Unknown(PartialType(None, dtype, (2,) if kwargs.get("unpack") is True else (1, 2)))


class PandasTable(Unknown):
    """A table of pandas: its columns have one axis, its values two."""

    __slots__ = ("_columns", "_whole")
    _columns: int | None
    _whole: Unknown

    def __init__(self, columns: int | None, whole: Unknown | None = None) -> None:
        """Create a table.

        Args:
            columns: their number, if it is known.
            whole: another table with the same rows.
        """
        super().__init__()
        # By `object`, as `Unknown` ignores values.
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_whole", self if whole is None else whole)

    def __getattr__(self, name: str) -> object:
        if name in ("values", "iloc", "to_numpy"):
            values = _of_shape(self._whole.axis_size(0), self._columns or self.axis_size(1))
            return (lambda *_, **__: values) if name == "to_numpy" else values
        if name in _KEEPING:
            return lambda *_, **__: PandasTable(self._columns)
        return super().__getattr__(name)

    def __getitem__(self, key: object) -> object:
        if isinstance(key, str):
            return _of_shape(self._whole.axis_size(0))
        return (
            PandasTable(len(key), self._whole)
            if isinstance(key, list)
            else PandasTable(self._columns)
        )


def _of_shape(*shape: object) -> Unknown:
    return Unknown(PartialType(numbers(shape), None, (len(shape),)))


def _is_dtype(value: object) -> bool:
    return is_unknown(value) or isinstance(value, type) or hasattr(value, "dtype")
