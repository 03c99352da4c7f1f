"""Templates of convolutions and pooling."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("general convolution", "convolutions", 4)
def NAME_convolution_of_RANK_axes(x: F[X], kernel: F[K], bias: F[OUTER]):
    """Apply a NAME convolution over RANK spatial axes."""
    RANK, LAST = choose(1, 2, 2, 2, 3), chance(0.5)
    NAME = choose("plain", "dilated", "transposed", "grouped")
    GROUPS = 2 if NAME == "grouped" else 1
    B, INNER, OUTER = between(2, 3), GROUPS * between(1, 3), GROUPS * between(2, 3)
    SPACE = tuple([choose(5, 6, 7, 8, 9) for D in range(RANK)]) if RANK < 3 else (5, 4, 4)
    WIDTHS = tuple([choose(1, 2, 3) for D in SPACE])
    LETTERS = "DHW"[3 - RANK :]
    LAYOUT = (
        ("N" + LETTERS + "C", LETTERS + "IO", "N" + LETTERS + "C")
        if LAST
        else ("NC" + LETTERS, "OI" + LETTERS, "NC" + LETTERS)
    )
    X = (B, *SPACE, INNER) if LAST else (B, INNER, *SPACE)
    K = (*WIDTHS, INNER // GROUPS, OUTER) if LAST else (OUTER, INNER // GROUPS, *WIDTHS)
    STRIDES = tuple([1 if NAME == "transposed" else choose(1, 1, 2) for D in SPACE])
    PADDING = choose(
        [(between(0, 2), between(0, 2)) for D in SPACE],
        "SAME" if NAME != "transposed" else [(1, 1)] * RANK,
    )
    TWOS = tuple([2 if WIDTH < 3 else 1 for WIDTH in WIDTHS])
    images: F[X] = choose(x, x, 2.0 * x - 1.0, x - jnp.mean(x), jax.nn.relu(x))
    PADS = '"SAME"' if PADDING == "SAME" else PADDING
    OPTION = {
        "plain": choose("", "precision=lax.Precision.HIGHEST, "),
        "dilated": f"rhs_dilation={TWOS}, ",
        "transposed": f"lhs_dilation={TWOS}, ",
        "grouped": "feature_group_count=2, ",
    }[NAME]
    WHERE = f"{STRIDES}, {PADS}, {OPTION}dimension_numbers={LAYOUT}"
    CALL = f"lax.conv_general_dilated(images, kernel, {WHERE})"
    y: F[X] = CALL
    if LAST and chance(0.4):
        y: F[X] = y + bias
    z: F[X] = choose(activated(y), activated(y), y)
    if chance(0.3):
        SPATIAL = tuple(range(1, RANK + 1)) if LAST else tuple(range(2, RANK + 2))
        return choose(jnp.mean, jnp.max, jnp.std)(z, axis=SPATIAL)
    return more(z, most=1, style="layer")


@template("simple convolution", "convolutions", 3)
def KIND_filter(
    x: W[N],
    window: W[K],
    image: W[N, M],
    stencil: W[3, 2],
    images: W[B, C, 6, 8],
    transposed: W[2, 2, C, 3],
):
    """Filter a signal (KIND)."""
    N, M, K, B, C = size(6, 12), size(5, 12), between(2, 5), size(2, 4), between(1, 3)
    MODE = choose("same", "valid", "full")
    KIND = choose("convolve", "correlate", "convolve2d", "conv_transpose")
    if KIND in ("convolve", "correlate"):
        signal: W[N] = prepared(x)
        y: W[N] = jnp.KIND(signal, window, mode="MODE")
    elif KIND == "convolve2d":
        field: W[N, M] = prepared(image)
        y: W[N, M] = jax.scipy.signal.convolve2d(field, stencil, mode="MODE")
    else:
        channels_last = jnp.moveaxis(images, 1, -1)
        y: W[B, 12, 16, 3] = lax.conv_transpose(channels_last, transposed, (2, 2), "SAME")
    return more(y, most=1, style="layer")


@template("pooling", "convolutions", 3)
def KIND_pool(x: W[B, N, M, C]):
    """Pool images (KIND)."""
    B, C, N, M = between(2, 3), between(2, 4), choose(4, 6, 8), choose(4, 6, 8)
    KIND = choose("max", "average", "reshape", "min", "slope")
    maps: W[B, N, M, C] = choose(x, x, activated(x), x - jnp.mean(x, axis=-1, keepdims=True))
    WINDOW = (1, 2, 2, 1)
    if KIND in ("max", "min"):
        START = "-jnp.inf" if KIND == "max" else "jnp.inf"
        y: W[B, N, M, C] = lax.reduce_window(maps, START, lax.KIND, WINDOW, WINDOW, "VALID")
    elif KIND == "average":
        y: W[B, N, M, C] = lax.reduce_window(maps, 0.0, lax.add, WINDOW, WINDOW, "VALID") / 4.0
    elif KIND == "reshape":
        tiles = maps.reshape(B, N // 2, 2, M // 2, 2, C)
        y: W[B, N, M, C] = choose(jnp.max, jnp.mean, jnp.min)(tiles, axis=(2, 4))
    else:

        def pooled_total(values):
            pooled = lax.reduce_window(values, -jnp.inf, lax.max, WINDOW, WINDOW, "VALID")
            return choose(jnp.sum(pooled**2), jnp.sum(jnp.exp(pooled)))

        y: W[B, N, M, C] = choose(
            jax.grad(pooled_total)(maps), maps - 0.1 * jax.grad(pooled_total)(maps)
        )
    return more(y, most=2, style="layer")
