"""Call `gdn_cp.py`, whose functions run inside of `shard_map`."""

import jax
from gdn_cp import compose_local, incoming_state
from jax.sharding import PartitionSpec as P

AUTO = jax.sharding.AxisType.Auto
mesh = jax.make_mesh((8,), ("context",), axis_types=(AUTO,))


def context_parallel(w, u, k, g, h_init):
    """Fold the chunks of each device, and compose the devices."""

    def on_device(w, u, k, g, h_init):
        return incoming_state(*compose_local(w, u, k, g), h_init, "context")

    return jax.shard_map(
        on_device,
        mesh=mesh,
        in_specs=(P("context"), P("context"), P("context"), P("context"), P()),
        out_specs=(P("context"), P()),
        check_vma=False,
    )(w, u, k, g, h_init)


def context_parallel_gradient(w, u, k, g, h_init):
    """Differentiate the final state."""
    return jax.grad(lambda h: context_parallel(w, u, k, g, h)[1].sum())(h_init)
