"""The modules that a written module imports, and their names in it."""

from __future__ import annotations

SHORT = {
    "jax.numpy": "jnp",
    "jax.lax": "lax",
    "numpy": "np",
    "jax.extend.core.primitives": "primitives",
    "jax.experimental.pallas": "pl",
    "jax.experimental.pallas.tpu": "pltpu",
    "jax.experimental.pallas.triton": "plgpu",
}
"""The names under which a written module imports modules."""

IMPORTS = {
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "lax": "from jax import lax",
    "np": "import numpy as np",
    "primitives": "from jax.extend.core import primitives",
    "ad": "from jax.interpreters import ad",
    "api_util": "from jax import api_util",
    "linear_util": "from jax.extend import linear_util",
    "pl": "from jax.experimental import pallas as pl",
    "pltpu": "from jax.experimental.pallas import tpu as pltpu",
    "plgpu": "from jax.experimental.pallas import triton as plgpu",
}
"""The import statement of each name in written modules."""

AT_HAND = frozenset(
    {
        "jax", "jax.checkpoint_policies", "jax.debug", "jax.dtypes", "jax.ffi", "jax.lax",
        "jax.lax.linalg", "jax.memory", "jax.nn", "jax.numpy", "jax.numpy.fft", "jax.numpy.linalg",
        "jax.random", "jax.sharding", "jax.tree", "jax.tree_util",
    }
)  # fmt: skip
"""Modules that `import jax` imports."""
