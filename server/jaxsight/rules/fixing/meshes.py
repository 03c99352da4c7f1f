"""The meshes of a file, for fixes that constrain shardings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.module_names import NamesOfModule
from jaxsight.source.statements import tree_of

_MESHES = frozenset({"jax.make_mesh", "jax.sharding.Mesh"})


def meshes(names: NamesOfModule) -> Iterator[str]:
    """Yield the names of the meshes that the module makes."""
    for chunk in names.module.chunks:
        if chunk.broken is not None:
            continue
        for node in tree_of(chunk.text).body:
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            if names.called(node.value.func) in _MESHES:
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def constrained(names: NamesOfModule, value: str, mesh: str, spec: str) -> str:
    """Return the text of a value with a sharding; `spec` has the arguments of its `P`."""
    jax = names.imports.get("jax", "jax")
    named = names.imports.get("jax.sharding.NamedSharding", f"{jax}.sharding.NamedSharding")
    p = names.imports.get("jax.sharding.PartitionSpec", f"{jax}.sharding.PartitionSpec")
    return f"{names.lax}.with_sharding_constraint({value}, {named}({mesh}, {p}({spec})))"
