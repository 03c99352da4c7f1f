"""Call `distributed/mesh_halo.py` and `distributed/fft.py` as the solver of PM++ does."""

import sys
from pathlib import Path

import jax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

sys.path.insert(0, str(Path(__file__).parents[1]))
from pmpp.core.utils import AXIS_NAME, create_compute_mesh  # noqa: E402
from pmpp.distributed.fft import create_ffts  # noqa: E402
from pmpp.distributed.mesh_halo import (  # noqa: E402
    extend_owned_mesh_with_halo,
    owned_mesh_partition_spec,
    reduce_mesh_halo_to_owned,
)

mesh = create_compute_mesh(jax.devices()[:8])
rfftn, irfftn, *_ = create_ffts(mesh)
LEFT = [(i, (i - 1) % 8) for i in range(8)]
RIGHT = [(i, (i + 1) % 8) for i in range(8)]


@jax.jit
def smooth(density):
    """Average over neighbours in x, which are on other devices at the edges."""

    def on_device(owned):
        padded = extend_owned_mesh_with_halo(owned, 2, LEFT, RIGHT)
        padded = (padded + jax.numpy.roll(padded, 1, 0)) / 2
        return reduce_mesh_halo_to_owned(padded, 2, LEFT, RIGHT)

    spec = owned_mesh_partition_spec(density.ndim)
    return jax.shard_map(on_device, mesh=mesh, in_specs=spec, out_specs=spec)(density)


@jax.jit
def laplacian(density):
    """Differentiate in Fourier space."""
    sharding = NamedSharding(mesh, P(AXIS_NAME, None, None))
    density = jax.lax.with_sharding_constraint(density, sharding)
    k = jax.numpy.fft.fftfreq(density.shape[0])
    spectrum = rfftn(density)
    return irfftn(-(k[:, None, None] ** 2) * spectrum)
