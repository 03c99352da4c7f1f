"""Represent a traced program as text that is equal for equal programs in all processes.

It has the whole jaxpr and digests of its captured arrays, whose values a jaxpr does not show.
It has no line numbers: these differ between a slice and the imported file.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.tracer.programs import jaxpr_text
from jaxsight.wire.chunks import CHUNK_FILE
from jaxsight.wire.messages.requests import CONSTANT
from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import all_jaxprs
from jaxsight_source.compat.staging import is_literal, open_jaxpr

_CHUNK = re.compile(rf"{CHUNK_FILE.pattern}(?::\d+)?")
_LINE = re.compile(r"(\.py):\d+")


def fingerprint(jaxpr: object) -> str:
    """Return the jaxpr's text, and a line for each array that it captures."""
    text = jaxpr_text.whole(0, jaxpr).text
    text = _LINE.sub(r"\1", _CHUNK.sub(lambda match: match["path"], text))
    return "\n".join([text, *map(_digest, _constants(jaxpr))])


def _constants(jaxpr: object) -> Iterator[object]:
    """Yield the arrays in a jaxpr and its inner jaxprs, in the order of the equations."""
    for part in all_jaxprs(jaxpr):
        yield from getattr(part, "consts", ())
        for equation in open_jaxpr(part).eqns:
            for var in equation.invars:
                if is_literal(var) and getattr(var.val, "ndim", 0) > 0:
                    yield var.val


def _digest(value: Any) -> str:
    """Return the array's type and a digest of its values; only the type if unreadable."""
    aval = avals.of(value)
    try:
        # JAX raises where a key array is converted to NumPy.
        if jnp.issubdtype(aval.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        data = np.ascontiguousarray(np.asarray(value)).tobytes()
    except Exception:  # noqa: BLE001 - a reference, an array that was deleted or lives elsewhere
        return f"{CONSTANT}{avals.text(aval)}"
    return f"{CONSTANT}{avals.text(aval)} {hashlib.blake2b(data, digest_size=16).hexdigest()}"
