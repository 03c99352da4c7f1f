"""Templates of convolutions, pooling and image operations."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template


@template("general convolution", "convolutions", 4)
def NAME_convolution_of_RANK_axes(x: F[X], kernel: F[K], bias: F[OUTER], pointwise: F[OUTER, 3]):
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
    if NAME == "dilated":
        y: F[X] = lax.conv_general_dilated(
            images, kernel, STRIDES, PADS, rhs_dilation=TWOS, dimension_numbers=LAYOUT
        )
    elif NAME == "transposed":
        y: F[X] = lax.conv_general_dilated(
            images, kernel, STRIDES, PADS, lhs_dilation=TWOS, dimension_numbers=LAYOUT
        )
    elif NAME == "grouped":
        y: F[X] = lax.conv_general_dilated(
            images, kernel, STRIDES, PADS, feature_group_count=2, dimension_numbers=LAYOUT
        )
    elif chance(0.2):
        y: F[X] = lax.conv_general_dilated(
            images, kernel, STRIDES, PADS, dimension_numbers=LAYOUT, precision=lax.Precision.HIGHEST
        )
    else:
        y: F[X] = lax.conv_general_dilated(images, kernel, STRIDES, PADS, dimension_numbers=LAYOUT)
    if LAST and chance(0.4):
        y: F[X] = y + bias
    z: F[X] = choose(activated(y), activated(y), y)
    if LAST and chance(0.3):
        z: F[X] = jnp.einsum("...c,co->...o", z, pointwise)
    elif chance(0.3):
        SPATIAL = tuple(range(1, RANK + 1)) if LAST else tuple(range(2, RANK + 2))
        return choose(
            jnp.mean(z, axis=SPATIAL),
            jnp.max(z, axis=SPATIAL),
            jnp.sum(jnp.square(z), axis=SPATIAL),
            jax.nn.softmax(jnp.mean(z, axis=SPATIAL)),
            jnp.std(z, axis=SPATIAL),
        )
    return more(z, most=1, style="layer")


@template("simple convolution", "convolutions", 3)
def KIND_filter(
    x: W[N],
    rows: W[B, N],
    window: W[K],
    image: W[N, M],
    stencil: W[3, 2],
    images: W[B, C, 6, 8],
    filters: W[2, C, 3, 3],
    transposed: W[2, 2, C, 3],
    other_window: W[3],
):
    """Filter a signal (KIND)."""
    N, M, K, B, C = size(6, 12), size(5, 12), between(2, 5), size(2, 4), between(1, 3)
    MODE = choose("same", "valid", "full")
    KIND = choose(*"convolve correlate conv convolve2d conv_transpose batched separable".split())
    if KIND in ("convolve", "correlate"):
        signal: W[N] = prepared(x)
        y: W[N] = jnp.KIND(signal, window, mode="MODE")
    elif KIND == "batched":
        y: W[B, N] = jax.vmap(lambda row: jnp.convolve(row, window, mode="MODE"))(rows)
    elif KIND == "convolve2d":
        field: W[N, M] = prepared(image)
        y: W[N, M] = jax.scipy.signal.convolve2d(field, stencil, mode="MODE")
    elif KIND == "separable":

        def filter_with(kernel, lines):
            return jax.vmap(lambda line: jnp.convolve(line, kernel, mode="same"))(lines)

        y: W[N, M] = filter_with(window, filter_with(other_window, image).T)
    elif KIND == "conv":
        STRIDE = choose(1, 2)
        pictures: W[B, C, 6, 8] = prepared(images)
        y: W[B, 2, 4, 6] = lax.conv(pictures, filters, (STRIDE, STRIDE), choose("VALID", "SAME"))
    else:
        channels_last = jnp.moveaxis(images, 1, -1)
        y: W[B, 12, 16, 3] = lax.conv_transpose(channels_last, transposed, (2, 2), "SAME")
    return more(y, most=1, style="layer")


@template("pooling", "convolutions", 3)
def KIND_pool(x: W[B, N, M, C]):
    """Pool images (KIND)."""
    B, C, N, M = between(2, 3), between(2, 4), choose(4, 6, 8), choose(4, 6, 8)
    KIND = choose("max", "average", "reshape", "whole", "min", "overlap", "slope")
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
    elif KIND == "whole":
        y: W[B, C] = choose(jnp.max, jnp.mean)(maps, axis=(1, 2))
    elif KIND == "overlap":
        y: W[B, N, M, C] = lax.reduce_window(
            maps, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 1, 1, 1), "SAME"
        )
    else:

        def pooled_total(values):
            pooled = lax.reduce_window(values, -jnp.inf, lax.max, WINDOW, WINDOW, "VALID")
            return choose(
                jnp.sum(pooled**2), 0.5 * jnp.sum(jnp.square(pooled)), jnp.sum(jnp.exp(pooled))
            )

        y: W[B, N, M, C] = choose(
            jax.grad(pooled_total)(maps), maps - 0.1 * jax.grad(pooled_total)(maps)
        )
    return more(y, most=2, style="layer")


@template("image operations", "convolutions", 2)
def KIND_image(x: W[N, M, C, RULE], flag: BOOL[()]):
    """Process an image (KIND)."""
    N, M, C, RULE = choose(4, 6, 8), choose(4, 6, 8), between(2, 4), choose("uniform", "normal")
    KIND = choose("resize", "sobel", "patches", "augment", "laplace", "upsample", "normalize")
    METHOD = choose("linear", "cubic", "nearest", "lanczos3")
    MODE = choose("edge", "wrap", "reflect")
    picture: W[N, M, C] = prepared(x)
    if KIND == "resize":
        y: W[N, M, C] = jax.image.resize(picture, (2 * N, M // 2, C), "METHOD")
    elif KIND == "sobel":
        dx = picture[:, 1:] - picture[:, :-1]
        dy = picture[1:] - picture[:-1]
        y: W[N, M, C] = choose(
            jnp.sqrt(dx[1:] ** 2 + dy[:, 1:] ** 2 + 1e-3),
            jnp.abs(dx[1:]) + jnp.abs(dy[:, 1:]),
            jnp.hypot(dx[1:], dy[:, 1:]),
        )
    elif KIND == "patches":
        tiles = picture.reshape(N // 2, 2, M // 2, 2, C)
        y: W[N, M] = tiles.transpose(0, 2, 1, 3, 4).reshape((N // 2) * (M // 2), -1)
    elif KIND == "augment":
        y: W[N, M, C] = jnp.where(
            flag, jnp.fliplr(picture), choose(jnp.flipud(picture), picture, 1.0 - picture)
        )
    elif KIND == "laplace":
        padded = jnp.pad(picture, ((1, 1), (1, 1), (0, 0)), mode="MODE")
        vertical = padded[2:, 1:-1] + padded[:-2, 1:-1]
        horizontal = padded[1:-1, 2:] + padded[1:-1, :-2]
        y: W[N, M, C] = vertical + horizontal - 4.0 * picture
    elif KIND == "upsample":
        y: W[N, M, C] = jnp.repeat(jnp.repeat(picture, 2, axis=0), 2, axis=1)
    else:
        mean = jnp.mean(picture, axis=(0, 1))
        y: W[N, M, C] = (picture - mean) / (jnp.std(picture, axis=(0, 1)) + 1e-3)
    if KIND != "patches" and chance(0.3):
        return choose(
            jnp.mean(y, axis=(0, 1)),
            jnp.max(y, axis=(0, 1)),
            jnp.clip(y, 0.0, 1.0),
            jnp.mean(y, axis=-1),
            y - jnp.mean(y, axis=(0, 1)),
            jnp.std(y, axis=(0, 1)),
        )
    return more(y, most=1)
