"""Templates of `vmap` and of programs over several devices."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

PAIRWISE = (
    (
        "distance",
        "the distances",
        """
        choose(
            jnp.sqrt(jnp.sum((x - y) ** 2) + 1e-3), jnp.sum(jnp.abs(x - y)), jnp.sum((x - y) ** 2),
            jnp.sum(x**2) + jnp.sum(y**2) - 2.0 * jnp.dot(x, y),
        )
        """,
    ),
    (
        "kernel_value",
        "a kernel",
        """
        gap = choose(jnp.sum((x - y) ** 2), jnp.sum(jnp.square(x - y)) / width**2)
        choose(
            jnp.exp(-0.5 * gap), 1.0 / (1.0 + gap / width), (1.0 + jnp.dot(x, y)) ** 2,
            jnp.sqrt(gap + width**2),
        )
        """,
    ),
)
"""Functions of two rows, with their names and titles."""


@template("vmap", "vectorization", 4)
def batched_NAME(xs: D[SHAPES[0]], ys: D[SHAPES[1]], scales: D[SHAPES[2]]):
    """Vectorise a function of COUNT arguments."""
    D, B, S, COUNT = choose(F, F, F, INT), size(2, 12), shape(0, 2, 8), choose(2, 3, 2)
    NAME = choose("score", "single", "process", "evaluate", "one_example", "predict")
    AXES = [choose(0, 0, len(S)), choose(0, 0, len(S), None), choose(0, None)]
    RESULT = choose(S, S, ())
    SHAPES = [S if AXIS is None else (*S[:AXIS], B, *S[AXIS:]) for AXIS in AXES]
    AXES, OUT = tuple(AXES[:COUNT]), choose(0, 0, len(RESULT))
    if COUNT == 2:

        def NAME(x: D[S], y: D[S]):
            value: D[S] = choose(mixed(x, y), binary(x, y))
            return reduced(value) if RESULT != S else value
    else:

        def NAME(x: D[S], y: D[S], scale: D[S]):
            value: D[S] = choose(mixed(x, y, scale), scale * binary(x, y))
            return reduced(value) if RESULT != S else value

    if OUT:
        batched = jax.vmap(NAME, in_axes=AXES, out_axes=OUT)
    else:
        batched = jax.vmap(NAME, in_axes=AXES)
    y: D[B, RESULT] = batched(xs, ys) if COUNT == 2 else batched(xs, ys, scales)
    return more(y, most=1)


@template("pairwise", "vectorization", 3)
def pairwise_NAME(xs: F[N, K], ys: F[M, K], width: F[(), "positive"]):
    """Compute TITLE of all pairs of rows."""
    N, M, K = size(2, 12), size(2, 12), size(2, 8)
    NAME, TITLE, VALUE = choose(*PAIRWISE)

    def NAME(x: F[K], y: F[K]):
        value: F[()] = formula(VALUE)
        return value

    if chance(0.5):
        rows = jax.vmap(NAME, in_axes=(None, 0))
        table: F[N, M] = jax.vmap(rows, in_axes=(0, None))(xs, ys)
    else:
        columns = jax.vmap(NAME, in_axes=(0, None))
        table: F[N, M] = jax.vmap(columns, in_axes=(None, 0), out_axes=1)(xs, ys)
    if chance(0.3):
        return choose(
            jnp.min(table, axis=1),
            jnp.argmin(table, axis=1),
            jax.nn.softmax(table, axis=1) @ ys,
            jax.nn.logsumexp(-table, axis=1),
        )
    return more(table, most=1)


@template("sharded", "vectorization", 3)
def sharded_FIRST_and_SECOND(x: W[N, M]):
    """Process shards on a mesh with `lax.FIRST` and `lax.SECOND`."""
    N, M, NAME = size(2, 8), size(2, 8), choose("local_step", "shard_sum", "reduce_shards")
    KINDS = "psum pmax pmin all_gather ppermute all_to_all axis_index psum_scatter".split()
    FIRST, SECOND = sample(KINDS, 2)
    with module:
        MESH = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Auto,))

    def NAME(shard: W[N, M]):
        terms: W[N, M] = choose(mapped(shard, 3), activated(shard), smooth(shard))
        for KIND in (FIRST, SECOND):
            if KIND in ("all_gather", "psum_scatter"):
                terms: W[N, M] = lax.KIND(terms, "data", tiled=True)
            elif KIND == "ppermute":
                terms: W[N, M] = lax.ppermute(terms, "data", [(0, 0)])
            elif KIND == "all_to_all":
                terms: W[N, M] = lax.all_to_all(terms, "data", 0, 0, tiled=True)
            elif KIND == "axis_index":
                terms: W[N, M] = jnp.where(lax.axis_index("data") == 0, terms, 0.0)
            else:
                terms: W[N, M] = lax.KIND(terms, "data")
        return choose(terms, terms * shard)

    spec = PartitionSpec("data")
    mapped_step = jax.shard_map(NAME, mesh=MESH, in_specs=spec, out_specs=spec, check_vma=False)
    y: W[N, M] = mapped_step(x)
    return more(y, most=3)
