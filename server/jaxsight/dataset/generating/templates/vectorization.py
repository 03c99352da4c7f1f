"""Templates of `vmap` and of programs over several devices."""

from __future__ import annotations

from jaxsight.dataset.generating.snippets import template


@template("vmap", "vectorization", 4)
def batched_NAME(xs: D[SHAPES[0]], ys: D[SHAPES[1]], scales: D[SHAPES[2]]):
    """Vectorise a function of COUNT arguments."""
    D, B, S, COUNT = choose(F, F, F, INT), size(2, 12), shape(0, 2, 8), between(1, 3)
    NAME = choose("score", "single", "process", "kernel_of", "one_example")
    AXES = [choose(0, 0, len(S)), choose(0, 0, len(S), None), choose(0, None)]
    RESULT = choose(S, S, ())
    SHAPES = [S if AXIS is None else (*S[:AXIS], B, *S[AXIS:]) for AXIS in AXES]

    def NAME(x: D[S], y: D[S], scale: D[S]):
        if COUNT == 1:
            value: D[S] = mixed(x)
        elif COUNT == 2:
            value: D[S] = mixed(x, y)
        else:
            value: D[S] = mixed(x, y, scale)
        if S and D == F and chance(0.4):
            value: D[S] = normalised(value)
        if RESULT != S:
            return reduced(value)
        return choose(value, value * x, 0.5 * value) if D == F else value

    batched = jax.vmap(NAME, in_axes=tuple(AXES))
    y: D[B, RESULT] = batched(xs, ys, scales)
    return more(y, most=3)


@template("pairwise", "vectorization", 3)
def pairwise_NAME(xs: F[N, K], ys: F[M, K]):
    """Compute the NAME of all pairs of rows."""
    N, M, K = size(2, 12), size(2, 12), size(2, 8)
    NAME = choose("distance", "similarity", "kernel_value")

    def NAME(x: F[K], y: F[K]):
        own: F[K] = mixed(x, y)
        return choose(
            jnp.exp(-jnp.mean((x - y) ** 2)),
            jnp.dot(x, y) / float(K),
            jnp.mean(jnp.abs(x - y)),
            jnp.mean(own),
            jnp.mean(jnp.tanh(own) * x),
            jnp.sum(x * y) / (jnp.sum(x * x) + jnp.sum(y * y) + 1.0),
        )

    if chance(0.3):
        table: F[N, M] = jax.vmap(lambda x: jax.vmap(lambda y: NAME(x, y))(ys))(xs)
    elif chance(0.5):
        rows = jax.vmap(NAME, in_axes=(None, 0))
        table: F[N, M] = jax.vmap(rows, in_axes=(0, None))(xs, ys)
    else:
        columns = jax.vmap(NAME, in_axes=(0, None))
        table: F[N, M] = jax.vmap(columns, in_axes=(None, 0), out_axes=1)(xs, ys)
    return more(table)


@template("named axes", "vectorization", 2)
def NAME_KIND(xs: W[B, S]):
    """Relate each example to the batch with `lax.KIND`."""
    B, S, NAME = size(2, 8), shape(0, 2, 8), choose("normalize", "center", "reweigh")
    KIND = choose("psum", "pmean", "pmax", "pmin", "all_gather", "axis_index")

    def NAME(x: W[S]):
        value: W[S] = mapped(x, 2) + 0.5 * x
        if KIND == "all_gather":
            shared = jnp.mean(lax.all_gather(value, "batch"), axis=0)
        elif KIND == "axis_index":
            shared = lax.axis_index("batch").astype(jnp.W)
        else:
            shared = lax.KIND(value, "batch")
        return choose(value - 0.5 * shared, value * jnp.tanh(shared), value + 0.2 * shared)

    y: W[B, S] = jax.vmap(NAME, axis_name="batch")(xs)
    return more(y)


@template("sharded", "vectorization", 3)
def sharded_FIRST_and_SECOND(x: W[N, M]):
    """Process shards on a mesh with `lax.FIRST` and `lax.SECOND`."""
    N, M, NAME = size(2, 8), size(2, 8), choose("local_step", "shard_sum", "reduce_shards")
    KINDS = "psum pmax pmin all_gather ppermute all_to_all axis_index psum_scatter".split()
    FIRST, SECOND = sample(KINDS, 2)
    with module:
        MESH = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Auto,))

    def NAME(shard: W[N, M]):
        terms: W[N, M] = mapped(shard, 3) + 0.1 * shard
        for KIND in (FIRST, SECOND):
            if KIND in ("all_gather", "psum_scatter"):
                terms: W[N, M] = lax.KIND(terms, "data", tiled=True)
            elif KIND == "ppermute":
                terms: W[N, M] = lax.ppermute(terms, "data", [(0, 0)])
            elif KIND == "all_to_all":
                terms: W[N, M] = lax.all_to_all(terms, "data", 0, 0, tiled=True)
            elif KIND == "axis_index":
                terms: W[N, M] = terms * (1.0 + lax.axis_index("data")).astype(terms.dtype)
            else:
                terms: W[N, M] = lax.KIND(terms, "data")
            if chance(0.5):
                terms: W[N, M] = mapped(terms)
        return 0.5 * terms

    spec = PartitionSpec("data")
    mapped_step = jax.shard_map(NAME, mesh=MESH, in_specs=spec, out_specs=spec, check_vma=False)
    y: W[N, M] = mapped_step(x)
    return more(y, most=3)
