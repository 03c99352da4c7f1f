"""Static arguments of jitted functions."""

from __future__ import annotations

import numpy as np

from jaxsight.repro.capturing.call_tree.records import Arguments, Call, Constant, Node, Packed


def without_static(item: Call) -> Arguments:
    """Return the arguments of a jitted function without static ones that are no simple values.

    The functions have their values already.
    """
    if item.api != "jax.jit" or not item.users:
        return item.inner

    def replaced(packed: Packed) -> Packed:
        simple = (bool, int, float, complex, str, type(None), np.generic)
        if all(isinstance(leaf, Constant) for leaf in packed.leaves) and not all(
            isinstance(leaf, Constant) and isinstance(leaf.value, simple) for leaf in packed.leaves
        ):
            return Packed(Node("none"), ())
        return packed

    kwargs = {name: replaced(packed) for name, packed in item.inner.kwargs.items()}
    return Arguments(tuple(map(replaced, item.inner.args)), kwargs)
