"""Templates of programs over several devices: shards, their collectives, and shardings."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

LOSSES = {
    "squared": """
        squares = choose(jnp.mean(errors**2), 0.5 * jnp.mean(jnp.sum(jnp.square(errors), axis=-1)))
        choose(squares, squares + choose(0.1, 0.01) * jnp.mean(weights**2))
        """,
    "robust": "jnp.mean(choose(jnp.log1p(errors**2), jnp.sqrt(1.0 + errors**2) - 1.0))",
    "cross_entropy": """
        log_probabilities = jax.nn.log_softmax(outputs, axis=-1)
        -jnp.mean(jnp.sum(jax.nn.softmax(targets, axis=-1) * log_probabilities, axis=-1))
        """,
    "margin": """
        margins = outputs * targets
        choose(jnp.mean(jax.nn.softplus(-margins)), jnp.mean(jax.nn.relu(1.0 - margins)))
        """,
}
"""Losses of a part of a batch."""

TITLES = {
    "gradients": "gradients",
    "loss": "the loss",
    "update": "new weights",
    "predictions": "normalised predictions",
    "clipped_update": "clipped updates",
    "accumulated": "accumulated gradients",
}
"""What is computed from a batch."""


@template("data parallel step", "distributed", 3)
def data_parallel_KIND(weights: W[N, M], inputs: W[B, N], targets: W[B, M]):
    """Compute TITLE from a batch that is split over COUNT devices."""
    COUNT, N, M = choose(2, 4, 8), size(2, 8), size(2, 6)
    B = COUNT * choose(1, 2, 3)
    KIND = choose(*TITLES)
    TITLE = TITLES[KIND]
    LOSS, OFFSET = choose(*LOSSES), choose(0.5, 1.0)
    RATE, PARTS = choose(0.1, 0.5, 0.01), 2
    B = 2 * B if KIND == "accumulated" else B
    with module:
        MESH = jax.make_mesh((COUNT,), ("data",), axis_types=(AxisType.Auto,))

        def loss(weights, inputs, targets):
            """Return the mean loss of a part of the batch."""
            scores: W[B, M] = choose(
                inputs @ weights, inputs @ weights / sqrt(N), inputs @ weights - OFFSET
            )
            outputs: W[B, M] = choose(scores, activated(scores), jnp.tanh(scores))
            errors = outputs - targets
            value: W[()] = formula(LOSSES[LOSS])
            return value

    def local_step(weights, inputs, targets):
        if KIND == "loss":
            return lax.pmean(loss(weights, inputs, targets), "data")
        if KIND == "predictions":
            outputs: W[B, M] = inputs @ weights
            units: W[B, M] = activated(outputs)
            center = lax.pmean(jnp.mean(units, axis=0), "data")
            spread = lax.pmean(jnp.mean((units - center) ** 2, axis=0), "data")
            scaled = choose((units - center) * lax.rsqrt(spread + 1e-3), units - center)
            return choose(scaled - targets, scaled * targets)
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
        if KIND == "clipped_update":
            norm = jnp.sqrt(jnp.sum(gradients**2) + 1e-3)
            return weights - RATE * gradients / choose(jnp.maximum(norm, 1.0), 1.0 + norm)
        return choose(weights - RATE * gradients, (1.0 - 0.1 * RATE) * weights - RATE * gradients)

    batch = PartitionSpec("data")
    step = jax.shard_map(
        local_step,
        mesh=MESH,
        in_specs=(PartitionSpec(), batch, batch),
        out_specs=batch if KIND == "predictions" else PartitionSpec(),
        check_vma=False,
    )
    return step(weights, inputs, targets)


@template("tensor parallel layers", "distributed", 3)
def tensor_parallel_KIND(x: W[B, N], w1: W[N, H], w2: W[H, M]):
    """Apply a LAYERS whose hidden units are split over COUNT devices."""
    COUNT, N, M, B = choose(2, 4, 8), size(2, 8), size(2, 8), size(2, 6)
    H = COUNT * choose(1, 2, 4)
    KIND, LAYERS = choose(
        ("mlp", "multilayer perceptron"),
        ("gated_block", "gated block"),
        ("scattered_mlp", "multilayer perceptron"),
        ("residual_mlp", "residual block"),
        ("gathered_layer", "layer"),
    )
    M = (
        N
        if KIND == "residual_mlp"
        else M - M % 2
        if KIND != "scattered_mlp"
        else COUNT * choose(1, 2)
    )
    with module:
        MESH = jax.make_mesh((COUNT,), ("model",), axis_types=(AxisType.Auto,))

    def local_layers(x, w1, w2):
        hidden: W[B, H] = choose(x @ w1, x @ w1 / sqrt(N))
        units: W[B, H] = activated(hidden)
        if KIND == "gathered_layer":
            whole: W[B, H] = lax.all_gather(units, "model", axis=1, tiled=True)
            scale = lax.psum(choose(jnp.sum(w2**2), jnp.sum(jnp.abs(w2))), "model")
            return choose(whole / jnp.sqrt(scale + 1.0), jax.nn.softmax(whole, axis=-1) * scale)
        product: W[B, M] = units @ w2
        if KIND == "scattered_mlp":
            return lax.psum_scatter(product, "model", scatter_dimension=1, tiled=True)
        total: W[B, M] = lax.psum(product, "model")
        if KIND == "gated_block":
            return choose(
                total * jax.nn.sigmoid(total), total * jax.nn.gelu(total), jnp.tanh(total)
            )
        if KIND == "residual_mlp":
            return choose(x + total, x + 0.5 * total, (x + total) / math.sqrt(2))
        return choose(total, normalised(total), activated(total))

    columns, rows = (PartitionSpec(None, "model"), PartitionSpec("model", None))
    layers = jax.shard_map(
        local_layers,
        mesh=MESH,
        in_specs=(PartitionSpec(), columns, rows),
        out_specs=columns if KIND == "scattered_mlp" else PartitionSpec(),
        check_vma=False,
    )
    return layers(x, w1, w2)


@template("ring of devices", "distributed", 3)
def ring_KIND(x: W[N, M], coefficients: W[M]):
    """Exchange KIND between COUNT neighboring devices."""
    COUNT, M = choose(2, 4, 8), size(2, 8)
    N = COUNT * choose(2, 3, 4)
    KIND = choose("halos", "averages", "running_sums", "blocks")
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
                values + scale * (padded[:-2] - 2.0 * values + padded[2:]),
                0.5 * scale * (padded[2:] - padded[:-2]),
                scale * jnp.maximum(jnp.maximum(padded[:-2], padded[2:]), values),
            )
        if KIND == "averages":
            around = 0.5 * (from_neighbor(values, 1) + from_neighbor(values, -1))
            return choose(around + scale * block, block + scale * (around - block), scale * around)
        if KIND == "running_sums":
            own = jnp.cumsum(values, axis=0)
            totals = lax.all_gather(own[-1], "ring")
            before = jnp.arange(COUNT) < lax.axis_index("ring")
            offset = jnp.sum(jnp.where(before[:, None], totals, 0.0), axis=0)
            return choose(
                scale * (own + offset), own + offset - scale, scale * jax.nn.softplus(own + offset)
            )
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


@template("mesh of two axes", "distributed", 2)
def two_axis_KIND(x: W[N, K], y: W[K, M]):
    """Compute the KIND of matrices on a mesh of ROWS x COLUMNS devices."""
    ROWS, COLUMNS = choose((2, 2), (2, 4), (4, 2))
    N, K, M = ROWS * choose(1, 2), COLUMNS * choose(1, 2, 3), size(2, 6)
    KIND = choose("product", "statistics", "normalisation")
    with module:
        MESH = jax.make_mesh((ROWS, COLUMNS), ("x", "y"), axis_types=(AxisType.Auto,) * 2)

    def local_part(left: W[N, K], right):
        block: W[N, K] = choose(left, left, activated(left))
        if KIND == "product":
            product = lax.psum(block @ right, "y")
            return choose(product, jax.nn.relu(product), product / K, jnp.tanh(product))
        if KIND == "statistics":
            largest = lax.pmax(jnp.max(block), ("x", "y"))
            mean = lax.pmean(jnp.mean(block), ("x", "y"))
            return choose(
                right / (largest - mean), (right - mean) / (1.0 + largest), right * largest
            )
        total = lax.psum(jnp.sum(block**2, axis=1, keepdims=True), "y")
        rows = choose(block * lax.rsqrt(total + 1e-3), block / jnp.sqrt(total + 1e-3))
        return lax.psum(rows @ right, "y")

    part = jax.shard_map(
        local_part,
        mesh=MESH,
        in_specs=(PartitionSpec("x", "y"), PartitionSpec("y", None)),
        out_specs=PartitionSpec("y", None) if KIND == "statistics" else PartitionSpec("x", None),
        check_vma=False,
    )
    return part(x, y)


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
