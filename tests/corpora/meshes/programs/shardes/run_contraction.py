"""Call `contraction.py`: a step of evolution strategies over eight devices."""

import sys
from pathlib import Path

import jax

sys.path.insert(0, str(Path(__file__).parents[1]))
from shardes import contraction, sharding  # noqa: E402
from shardes.strategies.iid_gaussian import IIDGaussian  # noqa: E402
from shardes.strategies.seed_regenerated import SeedRegenerated  # noqa: E402

mesh = sharding.make_mesh()
strategy = IIDGaussian()


@jax.jit
def gather_weights(key, params, weights):
    """Strategy A: gather the weights."""
    weights = jax.lax.with_sharding_constraint(weights, sharding.members(mesh))
    ids = sharding.member_ids(weights.shape[0], mesh)
    return contraction.contract(strategy, key, params, ids, weights, mesh, how="A")


@jax.jit
def sum_updates(key, params, weights):
    """Strategy B: sum the updates."""
    weights = jax.lax.with_sharding_constraint(weights, sharding.members(mesh))
    ids = sharding.member_ids(weights.shape[0], mesh)
    return contraction.contract(strategy, key, params, ids, weights, mesh, how="B")


@jax.jit
def regenerate_noise(key, params, weights):
    """Strategy B, with noise that a loop over the members computes again."""
    weights = jax.lax.with_sharding_constraint(weights, sharding.members(mesh))
    ids = sharding.member_ids(weights.shape[0], mesh)
    return contraction.contract(SeedRegenerated(), key, params, ids, weights, mesh, how="B")
