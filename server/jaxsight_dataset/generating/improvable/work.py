"""Templates of work that another form saves (JX213 to JX220), and of kernels (JX203 to JX208)."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("jx213 inverse", "wasted work")
def NAME_system(matrix: F32[N, N, "definite"], b: F32[N, K]):
    """Apply the inverse of a matrix."""
    N, K, NAME = size(4, 32), choose((), 3, 5), choose("solve", "whiten", "correct")
    rhs = settled(b)
    if chance(0.5):
        inverse = jnp.linalg.inv(matrix)
        y: F32[N] = inverse @ rhs
    else:
        y: F32[N] = jnp.linalg.inv(matrix) @ rhs
    return settled(y)


@template("jx214 diagonal", "wasted work")
def NAME_matrix(x: F32[N, M], gains: F32[N], scales: F32[M]):
    """Scale an axis of a matrix."""
    N, M, NAME = size(8, 64), size(8, 64), choose("scale", "weigh", "rescale")
    z = settled(x)
    y: F32[N, M] = choose(z @ jnp.diag(scales), jnp.diag(gains) @ z)
    return settled(y)


@template("jx214 chain", "wasted work")
def NAME_state(a: F32[N, N], b: F32[N, N], state: F32[N]):
    """Apply two matrices to a vector."""
    N, NAME = choose(128, 192, 256, 320), choose("propagate", "project", "transport")
    z = settled(state)
    y: F32[N] = a @ b @ z
    return settled(y)


@template("jx215 sorted", "wasted work")
def NAME_values(x: F32[ROWS, N]):
    """Find extreme values."""
    ROWS, N, K = choose((), 4, 8), choose(500, 1000, 2000, 4000), between(2, 12)
    NAME = choose("largest", "peak", "extreme")
    z = settled(x)
    if ROWS == ():
        y: F32[()] = choose(jnp.sort(z)[-K:], jnp.sort(z)[-1], jnp.sort(z)[0])
    else:
        y: F32[ROWS] = choose(jnp.sort(z, axis=-1)[..., -1], jnp.sort(z, axis=-1)[..., 0])
    return settled(y)


@template("jx217 carried", "wasted work")
def NAME_series(xs: F32[M, N]):
    """Run a recurrence, and return its last state."""
    M, N, NAME = choose(20, 50, 100), size(4, 32), choose("encode", "filter_states", "recur")
    inputs = settled(xs)

    def advance(h, x):
        h = jnp.tanh(choose(h + x, 0.9 * h + x, h * 0.5 - x))
        return h, h

    _, states = lax.scan(advance, jnp.zeros(N), inputs)
    y: F32[N] = states[-1]
    return settled(y)


@template("jx218 spectrum", "wasted work")
def NAME_of_signal(x: F32[N]):
    """Compute the spectrum of a real signal."""
    N, NAME = choose(64, 128, 256, 512, 1024), choose("spectrum", "magnitudes", "power")
    signal = settled(x)
    modes = jnp.fft.fft(signal)
    y: F32[N] = jnp.abs(modes[: N // 2])
    return settled(y)


@template("jx220 branches", "wasted work")
def NAME_product(flag: BOOL[()], x: F32[N, N], left: F32[N, N], right: F32[N, N]):
    """Select one of two products."""
    N, NAME = choose(48, 64, 96, 128), choose("selected", "switched", "either")
    z = settled(x)
    y: F32[N, N] = jnp.where(flag, z @ left, z @ right)
    return settled(y)


@template("jx203 layout", "kernels")
def NAME_of_field(x: C64[S]):
    """Transform both axes of a field."""
    S, NAME = choose((64, 64), (128, 64), (128, 128), (256, 128)), choose("transform", "spectrum")
    y: F32[S] = jnp.abs(jnp.fft.fft(jnp.fft.fft(x, axis=0), axis=1))
    return settled(y)


@template("jx204 invariant", "kernels")
def NAME_field(x: F32[N, M]):
    """Update a field with a fixed mask."""
    N, M, TIMES = choose(256, 512), choose(512, 1024), between(20, 40)
    NAME, FACTOR = choose("decay", "relax", "oscillate"), choose(0.5, 0.25, 1.5)
    K = choose(3.0, 5.0, 7.0)
    z = settled(x)
    mask = (jnp.arange(N)[:, None] + jnp.arange(M) * FACTOR) % K
    y: F32[N, M] = choose(
        lax.fori_loop(0, TIMES, lambda _, y: jnp.cos(y) - mask, z),
        lax.fori_loop(0, TIMES, lambda _, y: jnp.sin(y) * mask, z),
        lax.fori_loop(0, TIMES, lambda _, y: 0.5 * y + mask, z),
    )
    return settled(y)


@template("jx208 meshgrid", "kernels")
def NAME_filter(x: F32[N, N]):
    """Filter a field by its frequencies."""
    N, NAME = choose(64, 96, 128, 160), choose("gaussian", "low_pass", "taper")
    field = settled(x)
    rows = jnp.fft.fftfreq(N)
    columns = jnp.fft.fftfreq(N)
    u, v = jnp.meshgrid(rows, columns, indexing="ij")
    y: F32[N, N] = field * (u**2 + v**2)
    return settled(y)
