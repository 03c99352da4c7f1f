"""The mesh of the context: of `jax.set_mesh`, or of `with mesh:`.

Applies to JAX 0.8 to 0.12. Private API used: `mesh.get_concrete_mesh`, as `jax.sharding.get_mesh`
is not in JAX 0.8, and `mesh.thread_resources`.
"""

from __future__ import annotations

from typing import Any

import jax
from jax._src import mesh as meshes


def concrete() -> jax.sharding.Mesh | None:
    """Return the mesh with its devices, or None if there is none."""
    mesh: Any = meshes.get_concrete_mesh()
    if mesh is None or mesh.empty:
        mesh = meshes.thread_resources.env.physical_mesh
    return None if mesh is None or mesh.empty else mesh
