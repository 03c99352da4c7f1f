"""JAX's own harnesses of primitives, which it tests exporting with.

Applies to JAX 0.8 to 0.12. Private API used: `jax._src.internal_test_util.test_harnesses`, which
reads options of the command line when it is imported.
"""

from __future__ import annotations

import functools
import sys
from typing import Any


@functools.cache
def every() -> list[Any]:
    """Return the harnesses that JAX says run on CPUs; none where JAX is installed without them."""
    arguments, sys.argv = sys.argv, sys.argv[:1]
    try:
        from jax._src.internal_test_util import test_harnesses
    except ImportError:
        return []
    finally:
        sys.argv = arguments
    return [harness for harness in test_harnesses.all_harnesses if harness.filter("cpu")]
