"""The context in which programs over meshes are traced. Applies to JAX 0.8 to 0.12.

Private API used: parameters of `shard_map` (`manual_axes`, from 0.9 on `newly_manual_axes`),
`core.extend_axis_env_nd`, `core.NamedAxisEffect`, `mesh.use_abstract_mesh`, `config._check_vma`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
from jax._src import config, core
from jax._src import mesh as meshes

from jaxsight_source.compat.jaxpr_types import Equation


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The parameters of a `shard_map`, independent of the JAX version."""

    mesh: Any
    body: Any
    manual: frozenset[str]
    """The axes that it makes manual."""
    in_specs: tuple[Any, ...]
    out_specs: tuple[object, ...]
    check_vma: bool

    @property
    def is_whole(self) -> bool:
        """Whether all axes of its mesh are manual, which is the default."""
        return self.manual >= frozenset(self.mesh.axis_names)


def shard_map(params: dict[str, Any]) -> ShardMap:
    manual = params.get("newly_manual_axes", params.get("manual_axes", frozenset()))
    return ShardMap(
        params["mesh"],
        params["jaxpr"],
        frozenset(manual),
        tuple(params["in_specs"]),
        tuple(params["out_specs"]),
        params["check_vma"],
    )


def has_mesh(aval: object) -> bool:
    """Return whether the type of a value has a mesh, even if no axis divides the value."""
    mesh: Any = getattr(getattr(aval, "sharding", None), "mesh", None)
    return mesh is not None and bool(mesh.axis_names)


def has_effects(equation: Equation) -> bool:
    """Return whether an equation has effects other than that it reads the name of an axis."""
    return any(not isinstance(effect, core.NamedAxisEffect) for effect in equation.effects)


@contextlib.contextmanager
def inside(mapped: ShardMap) -> Iterator[None]:
    """Enter the context of a `shard_map`'s body: axis names, manual mesh, variance check."""
    abstract_mesh = mapped.mesh.abstract_mesh
    manual = mapped.manual | set(getattr(mapped.mesh, "manual_axes", ()))
    inner = abstract_mesh.update_axis_types(
        dict.fromkeys(mapped.manual, jax.sharding.AxisType.Manual)
    )
    axes = [(name, size) for name, size in mapped.mesh.shape.items() if name in manual]
    with (
        core.extend_axis_env_nd(axes),
        meshes.use_abstract_mesh(inner),
        config._check_vma(mapped.check_vma),
    ):
        yield
