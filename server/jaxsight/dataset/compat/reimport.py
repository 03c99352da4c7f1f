"""Run a program from the text of its StableHLO, which JAX has no public function for.

Applies to JAX 0.8 to 0.12. `jax.export` reads only what it has serialized itself.

Private API used: jaxlib's MLIR bindings, `Client.compile_and_load` and executables'
`execute_sharded`, through `compiler.compat.jaxlib_alone`; and `lapack._lapack.initialize`, which
JAX calls before it lowers a call of LAPACK (`jax/_src/lax/linalg.py`, `initialize_lapack`): without
it, the call ends the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jaxlib import lapack
from jaxlib.mlir import ir

from jaxsight.compiler.compat import jaxlib_alone
from jaxsight.wire.meshes import ONE_DEVICE


def run(text: str, arrays: Sequence[jax.Array], options: dict[str, str | bool]) -> list[jax.Array]:
    """Compile StableHLO for this machine's CPU, and return the results for flat arrays.

    Args:
        text: a module whose function `main` has all `arrays` as parameters.
        options: XLA's debug options by name.

    Raise whatever parsing, compiling and running raise.
    """
    lapack._lapack.initialize()  # type: ignore[attr-defined]
    devices = jax.devices("cpu")[:1]
    with jaxlib_alone.context():
        module = ir.Module.parse(text)
        settings = jaxlib_alone.options(devices, options, ONE_DEVICE)
        executable: Any = jaxlib_alone.load(devices, module, settings)
    results = executable.execute_sharded(list(arrays))
    return [shards[0] for shards in results.disassemble_into_single_device_arrays()]
