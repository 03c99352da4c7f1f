"""Run a program from the text of its StableHLO, which JAX has no public function for.

Applies to JAX 0.8 to 0.12. `jax.export` reads only what it has serialized itself.

Private API used: jaxlib's MLIR bindings, `Client.compile_and_load` and executables'
`execute_sharded`, through `compiler.compat.jaxlib_alone`; and `lapack._lapack.initialize`, which
JAX calls before it lowers a call of LAPACK (`jax/_src/lax/linalg.py`, `initialize_lapack`): without
it, the call ends the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
from jaxlib import lapack
from jaxlib.mlir import ir

from jaxsight.compiler.compat import jaxlib_alone
from jaxsight.wire.meshes import ONE_DEVICE, Distribution

Executable: TypeAlias = Any
"""A `LoadedExecutable` of jaxlib."""


def run(text: str, arrays: Sequence[jax.Array], options: dict[str, str | bool]) -> list[jax.Array]:
    """Compile StableHLO for this machine's CPU, and return the results for flat arrays.

    Args:
        text: a module whose function `main` has all `arrays` as parameters.
        options: XLA's debug options by name.

    Raise whatever parsing, compiling and running raise.
    """
    return execute(load(text, options), arrays)


def load(text: str, options: dict[str, str | bool]) -> Executable:
    """Compile StableHLO for this machine's CPU, of which several devices may be simulated.

    Raise whatever parsing and compiling raise.
    """
    lapack._lapack.initialize()  # type: ignore[attr-defined]
    with jaxlib_alone.context():
        module = ir.Module.parse(text)
        distribution = _distribution(module, text)
        devices = jax.devices("cpu")[: distribution.devices]
        settings = jaxlib_alone.options(devices, options, distribution)
        return jaxlib_alone.load(devices, module, settings)


def _distribution(module: Any, text: str) -> Distribution:
    """Return how a module is distributed over devices.

    The partitioner chooses the shardings of parameters and results that have none, as those that
    `jax.jit` leaves unspecified.
    """
    replicas, partitions = (
        int(module.operation.attributes[name].value) if name in module.operation.attributes else 1
        for name in ("mhlo.num_replicas", "mhlo.num_partitions")
    )
    if replicas * partitions == 1:
        return ONE_DEVICE
    main = ir.SymbolTable(module.operation)["main"].operation.attributes
    signature = ir.FunctionType(ir.TypeAttr(main["function_type"]).value)
    is_free = {}
    for name, types in (("arg_attrs", signature.inputs), ("res_attrs", signature.results)):
        attributes = map(str, main[name]) if name in main else [""] * len(types)
        is_free[name] = tuple("sharding" not in each for each in attributes)
    return Distribution(
        partitions, replicas, "sdy." in text, is_free["arg_attrs"], is_free["res_attrs"]
    )


def printed(text: str) -> str:
    """Return StableHLO as MLIR prints what it parses; raise whatever parsing raises."""
    with jaxlib_alone.context():
        return str(ir.Module.parse(text))


def execute(executable: Executable, arrays: Sequence[jax.Array]) -> list[jax.Array]:
    """Return the results for flat arrays; raise whatever running raises."""
    results = executable.execute_sharded(list(arrays))
    return [shards[0] for shards in results.disassemble_into_single_device_arrays()]


def hlo(executable: Executable) -> str:
    """Return the optimized HLO."""
    return str(executable.hlo_modules()[0].to_string())
