"""Templates that create, move and join arrays."""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

CURVES = {
    "sine_wave": (
        "Sample a sine wave",
        "amplitude * choose(jnp.sin, jnp.cos)(2.0 * jnp.pi * frequency * times)",
    ),
    "chirp": (
        "Sample a wave of rising frequency",
        "amplitude * jnp.sin(jnp.pi * frequency * times**2)",
    ),
    "hann_window": (
        "Apply a Hann window",
        """
        window = 0.5 - 0.5 * jnp.cos(2.0 * jnp.pi * times)
        choose(amplitude * window, amplitude * window**2, amplitude * jnp.sqrt(window + 1e-3))
        """,
    ),
    "decay_curve": (
        "Sample an exponential decay",
        """
        choose(
            amplitude * jnp.exp(-times / width),
            amplitude * (1.0 - jnp.exp(-times / width)),
            amplitude * jnp.exp(-times / width) * jnp.cos(2.0 * jnp.pi * frequency * times),
            amplitude * 0.5 ** (times / width),
        )
        """,
    ),
    "log_frequencies": (
        "Space frequencies evenly",
        """
        frequencies = choose(
            jnp.logspace(-1.0, 1.0, M, dtype=jnp.W), jnp.geomspace(0.1, 10.0, M, dtype=jnp.W)
        )
        choose(
            amplitude / (1.0 + (frequencies / width) ** 2),
            amplitude * jnp.sin(frequencies * width),
            amplitude * jnp.log(frequencies),
        )
        """,
    ),
    "ramp": (
        "Build a linear ramp",
        """
        choose(
            amplitude * times, amplitude * (1.0 - times), amplitude + (width - amplitude) * times,
            amplitude * jnp.minimum(times / width, 1.0), amplitude * times**2 * (3.0 - 2.0 * times),
        )
        """,
    ),
    "sawtooth": (
        "Sample a sawtooth",
        """
        phase = times * frequency
        choose(
            amplitude * (phase - jnp.floor(phase + 0.5)),
            amplitude * jnp.sign(jnp.sin(2.0 * jnp.pi * phase)),
            amplitude * jnp.abs(phase - jnp.round(phase)),
        )
        """,
    ),
}

GRIDS = {
    "gaussian_kernel": (
        "Sample a Gaussian on a grid",
        """
        squares = choose(rows**2 + columns**2, (rows / width) ** 2 + columns**2)
        amplitude * jnp.exp(-frequency * squares)
        """,
    ),
    "radial_mask": (
        "Fade a grid radially",
        """
        radius = choose(jnp.hypot(rows, columns), jnp.sqrt(rows**2 + columns**2))
        choose(
            amplitude * jnp.clip(width - radius, 0.0, 1.0),
            amplitude * jax.nn.sigmoid(8.0 * (width - radius)),
            amplitude * jnp.where(radius < 0.5, 1.0, 0.5),
        )
        """,
    ),
    "checkerboard": (
        "Scale a checkerboard",
        """
        parity = (jnp.arange(N)[:, None] + jnp.arange(M)) % 2
        choose(amplitude * parity, jnp.where(parity == 0, amplitude, -width))
        """,
    ),
    "band_matrix": (
        "Build a band matrix",
        """
        choose(
            amplitude * (jnp.eye(N, M, dtype=jnp.W) - 0.5 * jnp.eye(N, M, k=1, dtype=jnp.W)),
            width * jnp.eye(N, M, dtype=jnp.W) + amplitude * jnp.eye(N, M, k=-1, dtype=jnp.W),
            amplitude * jnp.tri(N, M, k=1, dtype=jnp.W) - width * jnp.tri(N, M, k=-2, dtype=jnp.W),
        )
        """,
    ),
    "shift_matrix": (
        "Build a shift matrix",
        "amplitude * jnp.eye(N, M, k=choose(1, -1), dtype=jnp.W)",
    ),
    "position_bias": (
        "Compute biases from distances",
        """
        distances = jnp.abs(jnp.arange(N)[:, None] - jnp.arange(M))
        choose(
            -amplitude * distances, amplitude * jnp.exp(-distances / width), -width * distances**2
        )
        """,
    ),
    "causal_bias": (
        "Build a bias for causal attention",
        """
        visible = choose(
            jnp.tril(jnp.ones((N, M), dtype=bool)), jnp.tri(N, M, dtype=bool),
            jnp.arange(N)[:, None] >= jnp.arange(M),
        )
        jnp.where(visible, amplitude, choose(-1e4, -jnp.abs(width), 0.0))
        """,
    ),
    "polynomial_features": (
        "Compute powers on a grid",
        """
        powers = choose(across ** jnp.arange(3)[:, None], jnp.vander(across, 3, increasing=True).T)
        choose(amplitude * powers, powers * width + amplitude)
        """,
    ),
    "plane_wave": (
        "Sample a plane wave",
        """
        phase = 2.0 * jnp.pi * (frequency * rows + width * columns)
        choose(amplitude * jnp.cos(phase), amplitude * jnp.sin(phase) * jnp.exp(-(rows**2)))
        """,
    ),
}


@template("movement", "array", 3)
def rearrange_NAME(x: D[S]):
    """Rearrange an array of D."""
    D, S = choose(F, INT, F, CPX, "bool"), shape(2, 5, 12)
    NAME = choose("axes", "elements", "array", "blocks")
    y: D[S] = moved(prepared(x))
    if chance(0.7):
        y: D[S] = moved(y)
    return more(y, most=2)


@template("joining", "array")
def KIND_parts(first: D[HEAD, N, TAIL], second: D[HEAD, M, TAIL], third: D[HEAD, K, TAIL]):
    """Join arrays of D with KIND."""
    D, HEAD, TAIL = choose(F, INT, CPX, "bool", F), shape(0, 2, 6), shape(0, 1, 6)
    KIND = choose("concatenate", "stack", "hstack", "vstack", "append")
    N, AXIS, COUNT = size(2, 10), len(HEAD), between(2, 3)
    M, K = (size(2, 10), size(2, 10)) if KIND in ("concatenate", "append") else (N, N)
    one: D[HEAD, N, TAIL] = prepared(first)
    other: D[HEAD, M, TAIL] = prepared(second)
    if KIND == "append":
        y: D[HEAD, N, TAIL] = jnp.append(one, other, axis=AXIS)
    elif KIND == "concatenate":
        y: D[HEAD, N, TAIL] = choose(
            jnp.concatenate([one, other], axis=AXIS),
            jnp.concatenate([one, other, third], axis=AXIS),
        )
    elif KIND == "stack":
        y: D[HEAD, N, TAIL, 2] = choose(
            jnp.stack([one, other], axis=AXIS), jnp.stack([one, other, third], axis=AXIS)
        )
    else:
        y: D[HEAD, N, TAIL] = choose(jnp.KIND([one, other]), jnp.KIND([one, other, third]))
    return more(y)


@template("padding and slicing", "array", 3)
def KIND_of_NAME(x: D[S]):
    """Slice, pad or tile an array of D."""
    D, S = choose(F, INT, CPX, F), shape(1, 4, 16)
    KIND = choose("padding", "window", "split", "stride", "frames", "tiling", "tiling", "reversal")
    NAME = choose("edges", "borders", "blocks")
    A = between(0, len(S) - 1)
    x1: D[S] = prepared(x)
    if KIND == "padding":
        WIDTHS = [(choose(0, 1, -1) if N > 3 else 0, between(0, 2), choose(0, 0, 1, 2)) for N in S]
        y: D[S] = lax.pad(x1, jnp.zeros((), jnp.D), tuple(WIDTHS))
    elif KIND == "window":
        STARTS = tuple([between(0, N // 3) for N in S])
        STOPS = tuple([N - between(0, N // 4) for N in S])
        y: D[S] = lax.slice(x1, STARTS, STOPS, tuple([choose(1, 1, 2) for N in S]))
    elif KIND == "split":
        HALF = S[A] // 2
        upper, lower = lax.split(x1, (HALF, S[A] - HALF), axis=A)
        joined: D[S] = jnp.concatenate([lower, upper], axis=A)
        y: D[S] = binary(joined, x)
    elif KIND == "stride":
        y: D[S] = choose(x1[::2], x1[..., ::2], x1[..., ::-1])
    elif KIND == "frames":
        K = min(S[0], between(2, 4))
        positions = jnp.arange(S[0] - K + 1)[:, None] + jnp.arange(K)[None, :]
        y: D[S, 2] = x1[positions]
    elif KIND == "tiling":
        y: D[S] = jnp.tile(x1, tuple([choose(1, 2, 3) for N in S]))
    else:
        y: D[S] = lax.rev(x1, (A,))
    return more(y)


@template("curves", "array", 2)
def NAME(amplitude: W[A], frequency: W[(), "positive"], width: W[(), "positive"]):
    """TITLE."""
    M = size(3, 32)
    A, NAME = choose((), (M,)), choose(*CURVES)
    TITLE, LINES = CURVES[NAME]
    times = choose(
        jnp.linspace(0.0, 1.0, M, dtype=jnp.W),
        jnp.arange(M, dtype=jnp.W) / M,
        jnp.linspace(-1.0, 1.0, M, dtype=jnp.W),
    )
    y: W[M] = formula(LINES)
    return more(y)


@template("grids", "array", 2)
def NAME(amplitude: W[A], frequency: W[(), "positive"], width: W[(), "positive"]):
    """TITLE."""
    N, M = size(3, 16), size(3, 24)
    A, NAME = choose((), (M,)), choose(*GRIDS)
    TITLE, LINES = GRIDS[NAME]
    height = choose(jnp.linspace(-1.0, 1.0, N, dtype=jnp.W), jnp.arange(N, dtype=jnp.W) / N)
    across = jnp.linspace(-1.0, 1.0, M, dtype=jnp.W)
    if chance(0.3):
        rows = lax.broadcasted_iota(jnp.W, (N, M), 0) / N
        columns = lax.broadcasted_iota(jnp.W, (N, M), 1) / M
    elif chance(0.5):
        columns, rows = jnp.meshgrid(across, height, indexing="xy")
    else:
        rows, columns = jnp.meshgrid(height, across, indexing="ij")
    y: W[N, M] = formula(LINES)
    return more(y)


@template("broadcasting", "array")
def outer_NAME(rows: D[BATCH, N], columns: D[BATCH, M]):
    """Combine all rows with all columns."""
    D, BATCH, N, M = choose(F, F, INT), choose((), (), shape(1, 1, 6)), size(2, 32), size(2, 32)
    NAME = choose("products", "table", "pairs")
    left: D[BATCH, N] = prepared(rows)
    right: D[BATCH, M] = prepared(columns)
    column: D[BATCH, N, 1] = left[..., :, None]
    row: D[BATCH, 1, M] = right[..., None, :]
    if not BATCH and chance(0.2):
        column: D[N, M] = jnp.broadcast_to(left[:, None], (N, M))
    table: D[BATCH, N, M] = binary(column, row)
    if chance(0.3):
        table: D[BATCH, N, M] = mapped(table, 1)
    return more(table)


@template("conversion", "array")
def NAME(x: START[S], scale: TARGET[(), "positive"], offset: TARGET[S[-1:]]):
    """TITLE."""
    START = dtype(*"float32 float64 bfloat16 float16 int8 int16 int32 uint8 bool".split())
    S, TARGET = shape(0, 5, 12), dtype("float32", "float64", "bfloat16", "float16")
    KIND, NAME, TITLE = choose(
        *(("cast", f"convert_to_{TARGET}", f"Convert {START} values to {TARGET}"),),
        *(("scaled", "dequantize", f"Scale {START} values as {TARGET}"),),
        *(("shifted", f"rescale_to_{TARGET}", f"Scale and shift {START} values as {TARGET}"),),
        *(("back", f"compute_in_{TARGET}", f"Compute on {START} values in {TARGET}"),),
        *(("masked", f"masked_to_{TARGET}", f"Convert {START} values that pass a test"),),
    )
    y: START[S] = choose(x, prepared(x))
    wide: TARGET[S] = choose(
        y.astype(jnp.TARGET), lax.convert_element_type(y, jnp.TARGET), jnp.asarray(y, jnp.TARGET)
    )
    if KIND == "cast":
        z: TARGET[S] = wide
    elif KIND == "scaled":
        z: TARGET[S] = choose(wide * scale, wide / scale, (wide - 3.0) * scale)
    elif KIND == "shifted":
        z: TARGET[S] = choose(
            wide * scale + offset, (wide - offset) / scale, (wide - offset) * scale
        )
    elif KIND == "back":
        inner: TARGET[S] = mapped(wide)
        z: TARGET[S] = inner if START in ("bool", "int8", "uint8") else inner + offset
    elif START == "bool":
        z: TARGET[S] = jnp.where(y, offset, -scale)
    else:
        flags = compared(x)
        z: TARGET[S] = jnp.where(flags, wide, choose(jnp.zeros_like(wide), offset))
    return more(z)
