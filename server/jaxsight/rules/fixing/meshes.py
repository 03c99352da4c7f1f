"""The meshes of a file, for fixes that constrain shardings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.module_names import NamesOfModule

_MESHES = frozenset({"jax.make_mesh", "jax.sharding.Mesh"})


def meshes(names: NamesOfModule) -> Iterator[str]:
    """Yield the names of the meshes that the module makes."""
    for _, node in names.statements():
        match node:
            case ast.Assign(targets=targets, value=ast.Call(func=function)):
                if names.called(function) in _MESHES:
                    yield from (target.id for target in targets if isinstance(target, ast.Name))


def constrained(names: NamesOfModule, value: str, mesh: str, spec: str) -> str:
    """Return the text of a value with a sharding; `spec` has the arguments of its `P`."""
    jax = names.imports.get("jax", "jax")
    named = names.imports.get("jax.sharding.NamedSharding", f"{jax}.sharding.NamedSharding")
    p = names.imports.get("jax.sharding.PartitionSpec", f"{jax}.sharding.PartitionSpec")
    return f"{names.lax}.with_sharding_constraint({value}, {named}({mesh}, {p}({spec})))"
