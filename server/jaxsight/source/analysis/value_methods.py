"""Methods and attributes of arrays, strings and containers, by what calling them can change."""

from __future__ import annotations

from jaxsight.text.names import words

VALUE_METHODS = frozenset(
    words(
        """
        all any argmax argmin argsort astype block_until_ready clip conj conjugate copy cumprod
        cumsum diagonal dot flatten imag item max mean min nonzero prod ravel real repeat reshape
        round searchsorted squeeze std sum swapaxes take tolist trace transpose var view count
        encode endswith format index isdigit join lower lstrip removeprefix removesuffix replace
        rstrip split splitlines startswith strip title upper items keys values
        """
    )
)
"""Methods of arrays, strings and dictionaries without side effects.

None of them returns a one-pass iterator.
"""

VALUE_ATTRIBUTES = frozenset(
    {"T", "at", "dtype", "imag", "itemsize", "nbytes", "ndim", "real", "shape", "size"}
)
"""Attributes of arrays."""

ARRAY_UPDATES = frozenset(
    {"add", "apply", "divide", "get", "max", "min", "mul", "multiply", "power", "set", "subtract"}
)
"""Methods such as `x.at[i].set(y)`, which return a new array."""

CONTAINER_METHODS = frozenset(
    words(
        """
        add append appendleft clear difference_update discard extend get insert pop popitem popleft
        remove reverse setdefault sort update
        """
    )
)
"""Methods that a function may call on a container that it created itself."""

CONTAINERS = frozenset({"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"})
"""Functions that return a new container."""
