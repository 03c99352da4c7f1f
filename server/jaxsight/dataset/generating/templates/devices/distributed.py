"""Templates of programs over several devices: shards, their collectives, and shardings."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("data parallel step", "distributed", 3)
def data_parallel_KIND(weights: W[N, M], inputs: W[B, N], targets: W[B, M]):
    """Compute the KIND of a batch that is split over COUNT devices."""
    COUNT, N, M = choose(2, 4, 8), size(2, 8), size(2, 6)
    B = COUNT * choose(1, 2, 3)
    KIND = choose("gradients", "loss", "update", "predictions")
    with module:
        MESH = jax.make_mesh((COUNT,), ("data",), axis_types=(AxisType.Auto,))

        def loss(weights, inputs, targets):
            """Return the mean loss of a part of the batch."""
            outputs: W[B, M] = jnp.tanh(inputs @ weights)
            errors: W[B, M] = choose(outputs - targets, settled(outputs) - targets)
            return jnp.mean(errors**2) + choose(0.1, 0.01) * jnp.mean(weights**2)

    def local_step(weights, inputs, targets):
        if KIND == "loss":
            return lax.pmean(loss(weights, inputs, targets), "data")
        if KIND == "predictions":
            outputs: W[B, M] = inputs @ weights
            center: W[M] = lax.pmean(jnp.mean(outputs, axis=0), "data")
            return settled(outputs) - center + 0.5 * targets
        gradients = jax.grad(loss)(weights, inputs, targets)
        gradients = choose(lax.pmean, lax.psum)(gradients, "data")
        if KIND == "gradients":
            return gradients
        return weights - choose(0.1, 0.5, 0.01) * gradients

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
        ("gathered_layer", "layer"),
    )
    M = M - M % 2 if KIND != "scattered_mlp" else COUNT * choose(1, 2)
    with module:
        MESH = jax.make_mesh((COUNT,), ("model",), axis_types=(AxisType.Auto,))

    def local_layers(x, w1, w2):
        hidden: W[B, H] = x @ w1 / choose(2.0, 4.0)
        activated: W[B, H] = mapped(hidden)
        if KIND == "gathered_layer":
            units: W[B, H] = lax.all_gather(activated, "model", axis=1, tiled=True)
            return settled(units) - lax.pmean(jnp.mean(w2), "model")
        product: W[B, M] = activated @ w2
        if KIND == "scattered_mlp":
            return lax.psum_scatter(product, "model", scatter_dimension=1, tiled=True)
        total: W[B, M] = lax.psum(product, "model")
        if KIND == "gated_block":
            return total * jax.nn.sigmoid(total)
        return settled(total)

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
        values: W[N, M] = settled(block)
        if KIND == "halos":
            left = from_neighbor(values[-1:], 1)
            right = from_neighbor(values[:1], -1)
            padded = jnp.concatenate([left, values, right])
            return scale * (padded[:-2] - 2.0 * values + padded[2:])
        if KIND == "averages":
            return scale * 0.5 * (from_neighbor(values, 1) + from_neighbor(values, -1)) + block
        if KIND == "running_sums":
            own = jnp.cumsum(values, axis=0)
            totals = lax.all_gather(own[-1], "ring")
            before = jnp.arange(COUNT) < lax.axis_index("ring")
            offset = jnp.sum(jnp.where(before[:, None], totals, 0.0), axis=0)
            return scale * (own + offset) / 4.0
        total = 0.5 * values
        for _ in range(COUNT - 1):
            values = from_neighbor(values, 1)
            total = jnp.maximum(total, values) if chance(0.5) else 0.5 * total + jnp.tanh(values)
        return scale * total

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
        block: W[N, K] = settled(left)
        if KIND == "product":
            return lax.psum(block @ right, "y")
        if KIND == "statistics":
            largest = lax.pmax(jnp.max(block), ("x", "y"))
            mean = lax.pmean(jnp.mean(block), ("x", "y"))
            return choose(largest - mean, largest * jnp.tanh(mean)) * right
        total = lax.psum(jnp.sum(block**2, axis=1, keepdims=True), "y")
        return lax.psum((block * lax.rsqrt(total + 0.1)) @ right, "y")

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
    COUNT, N, M = choose(2, 4, 8), size(2, 8), size(2, 8)
    B, H = COUNT * choose(1, 2), COUNT * choose(1, 2)
    KIND = choose("mlp", "residual_layer", "normalised_layer")
    with module:
        MESH = jax.make_mesh((COUNT,), ("devices",), axis_types=(AxisType.Auto,))

        def placed(value, *axes):
            """Return a value whose dimensions are split over axes of the mesh."""
            sharding = NamedSharding(MESH, PartitionSpec(*axes))
            return lax.with_sharding_constraint(value, sharding)

    batch: W[B, N] = placed(x, "devices", None)
    inputs: W[B, N] = settled(batch)
    hidden: W[B, H] = inputs @ placed(w1, None, "devices") / choose(2.0, 4.0)
    activated: W[B, H] = mapped(hidden)
    units: W[B, H] = placed(activated, choose(None, "devices"), None)
    outputs: W[B, M] = units @ w2
    if KIND == "residual_layer":
        y: W[B, M] = placed(outputs, "devices", None) + jnp.mean(x)
    elif KIND == "normalised_layer":
        y: W[B, M] = normalised(outputs)
    else:
        y: W[B, M] = settled(outputs)
    return more(y, most=2)
