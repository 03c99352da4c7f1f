"""Templates of programs over several devices: shards, their collectives, and shardings."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

LOSSES = {
    "squared": """
        squares = jnp.mean(errors**2)
        choose(squares, squares + choose(0.1, 0.01) * jnp.mean(weights**2))
        """,
    "robust": "jnp.mean(choose(jnp.log1p(errors**2), jnp.sqrt(1.0 + errors**2) - 1.0))",
}
"""Losses of a part of a batch."""


@template("data parallel step", "distributed", 3)
def data_parallel_KIND(weights: W[N, M], inputs: W[B, N], targets: W[B, M]):
    """Compute TITLE from a batch that is split over COUNT devices."""
    COUNT, N, M = choose(2, 4, 8), size(2, 8), size(2, 6)
    B = COUNT * choose(1, 2, 3)
    KIND, TITLE = choose(
        ("gradients", "gradients"),
        ("update", "new weights"),
        ("accumulated", "accumulated gradients"),
    )
    LOSS, RATE, PARTS = choose(*LOSSES), choose(0.1, 0.5, 0.01), 2
    B = 2 * B if KIND == "accumulated" else B
    with module:
        MESH = jax.make_mesh((COUNT,), ("data",), axis_types=(AxisType.Auto,))

        def loss(weights, inputs, targets):
            """Return the mean loss of a part of the batch."""
            scores: W[B, M] = choose(inputs @ weights, inputs @ weights / sqrt(N))
            outputs: W[B, M] = choose(scores, activated(scores))
            errors = outputs - targets
            value: W[()] = formula(LOSSES[LOSS])
            return value

    def local_step(weights, inputs, targets):
        if KIND == "accumulated":

            def add_part(total, part):
                return total + jax.grad(loss)(weights, *part), None

            parts = jax.tree.map(lambda x: x.reshape(PARTS, -1, x.shape[-1]), (inputs, targets))
            gradients, _ = lax.scan(add_part, jnp.zeros_like(weights), parts)
            return choose(
                lax.pmean(gradients, "data") / PARTS, weights - RATE * lax.psum(gradients, "data")
            )
        gradients = jax.grad(loss)(weights, inputs, targets)
        gradients = choose(lax.pmean, lax.psum)(gradients, "data")
        if KIND == "gradients":
            return choose(gradients, gradients / (jnp.linalg.norm(gradients) + 1e-3))
        return choose(weights - RATE * gradients, (1.0 - 0.1 * RATE) * weights - RATE * gradients)

    batch = PartitionSpec("data")
    step = jax.shard_map(
        local_step,
        mesh=MESH,
        in_specs=(PartitionSpec(), batch, batch),
        out_specs=PartitionSpec(),
        check_vma=False,
    )
    return step(weights, inputs, targets)


@template("ring of devices", "distributed", 3)
def ring_KIND(x: W[N, M], coefficients: W[M]):
    """Exchange KIND between COUNT neighboring devices."""
    COUNT, M = choose(2, 4, 8), size(2, 8)
    N = COUNT * choose(2, 3, 4)
    KIND = choose("halos", "running_sums", "blocks")
    with module:
        MESH = jax.make_mesh((COUNT,), ("ring",), axis_types=(AxisType.Auto,))

        def from_neighbor(block, offset):
            """Return the block of the device that is offset before this one."""
            count = COUNT
            return lax.ppermute(block, "ring", [(i, (i + offset) % count) for i in range(count)])

    def local_step(block: W[N, M], scale):
        values: W[N, M] = choose(block, block, activated(block), jnp.square(block))
        if KIND == "halos":
            left = from_neighbor(values[-1:], 1)
            right = from_neighbor(values[:1], -1)
            padded = jnp.concatenate([left, values, right])
            return choose(
                scale * (padded[:-2] - 2.0 * values + padded[2:]),
                0.5 * scale * (padded[2:] - padded[:-2]),
            )
        if KIND == "running_sums":
            own = jnp.cumsum(values, axis=0)
            totals = lax.all_gather(own[-1], "ring")
            before = jnp.arange(COUNT) < lax.axis_index("ring")
            offset = jnp.sum(jnp.where(before[:, None], totals, 0.0), axis=0)
            return choose(scale * (own + offset), own + offset - scale)
        total = values
        for _ in range(COUNT - 1):
            values = from_neighbor(values, 1)
            total = choose(jnp.maximum(total, values), total + values, jnp.logaddexp(total, values))
        return choose(scale * total, scale + block - total)

    blocks = PartitionSpec("ring")
    step = jax.shard_map(
        local_step,
        mesh=MESH,
        in_specs=(blocks, PartitionSpec()),
        out_specs=blocks,
        check_vma=False,
    )
    return step(x, coefficients)


@template("sharding constraints", "distributed", 3)
def constrained_KIND(x: W[B, N], w1: W[N, H], w2: W[H, M]):
    """Apply layers whose values are placed by shardings over COUNT devices."""
    COUNT, N, M = choose(2, 4, 8), size(3, 8), size(3, 8)
    B, H = COUNT * choose(1, 2), COUNT * choose(1, 2)
    KIND = choose("mlp", "residual_layer", "normalised_layer")
    with module:
        MESH = jax.make_mesh((COUNT,), ("devices",), axis_types=(AxisType.Auto,))

        def placed(value, *axes):
            """Return a value whose dimensions are split over axes of the mesh."""
            sharding = NamedSharding(MESH, PartitionSpec(*axes))
            return lax.with_sharding_constraint(value, sharding)

    batch: W[B, N] = placed(x, "devices", None)
    inputs: W[B, N] = choose(batch, batch, normalised(batch))
    hidden: W[B, H] = choose(inputs @ placed(w1, None, "devices"), inputs @ w1 / sqrt(N))
    active: W[B, H] = activated(hidden)
    units: W[B, H] = placed(active, choose(None, "devices"), None)
    outputs: W[B, M] = units @ w2
    if KIND == "residual_layer":
        y: W[B, M] = placed(outputs, "devices", None) + jnp.mean(x, axis=-1, keepdims=True)
    elif KIND == "normalised_layer":
        y: W[B, M] = normalised(outputs)
    else:
        y: W[B, M] = choose(outputs, activated(outputs))
    return more(y, most=2, style="layer")
