"""Templates of loops over a series or over steps.

The lines of a recurrence end with what its carry becomes.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

SERIES = {
    "exponential_smoothing": (
        "Smooth a series exponentially",
        "choose(DECAY * carry + (1.0 - DECAY) * x, carry + RATE * (x - carry))",
    ),
    "leaky_integrator": (
        "Integrate inputs with a leak",
        "choose(DECAY * carry + x, carry + RATE * (x - jnp.tanh(carry)))",
    ),
    "state_space": (
        "Run a state-space model over a series",
        """
        rotated = carry @ weights / sqrt(S[-1]) if S else DECAY * carry
        choose(rotated + x, jnp.tanh(rotated + x), DECAY * rotated + RATE * x)
        """,
    ),
    "reservoir": (
        "Run a reservoir over inputs",
        """
        drive = x + carry @ weights / sqrt(S[-1]) if S else x + DECAY * carry
        choose(jnp.tanh(drive), (1.0 - RATE) * carry + RATE * jnp.tanh(drive))
        """,
    ),
    "gated_recurrence": (
        "Run a gated linear recurrence",
        """
        gate = choose(jax.nn.sigmoid(x), jnp.exp(-jax.nn.softplus(x)), jax.nn.sigmoid(x + 1.0))
        choose(gate * carry + (1.0 - gate) * x, gate * carry + x)
        """,
    ),
    "soft_peak": (
        "Follow the peak of a series smoothly",
        "choose(jnp.logaddexp(carry, x), jnp.logaddexp(DECAY * carry, x))",
    ),
    "filter_series": (
        "Filter a series",
        "choose(DECAY * carry + x, x - DECAY * carry, DECAY * (carry + x))",
    ),
    "recurrence": (
        "Run a recurrence over a series",
        """
        drive = mixed(carry, x)
        choose(jnp.tanh(drive), DECAY * carry + RATE * drive, jnp.sin(drive))
        """,
    ),
}


@template("scan", "loops", 3)
def NAME(xs: F[N, S], initial: F[S], weights: F[S[-1:], S[-1:]]):
    """TITLE."""
    N, S, NAME = size(3, 16), shape(0, 2, 12), choose(*SERIES)
    TITLE, LINES = SERIES[NAME]
    STEP, DECAY = choose("step", "advance", "update"), choose(0.95, 0.8, 0.9)
    RATE = choose(0.1, 0.05)

    def STEP(carry: F[S], x: F[S]):
        new: F[S] = formula(LINES)
        return new, choose(new, new, x - new, jnp.square(x - new), jnp.mean(new))

    if chance(0.15):
        last, outputs = lax.scan(STEP, initial, xs, reverse=True)
    elif chance(0.15):
        last, outputs = lax.scan(STEP, initial, xs, unroll=choose(2, 4))
    else:
        last, outputs = lax.scan(STEP, initial, xs)
    if NAME != "recurrence" and chance(0.2):
        return last
    if chance(0.4):
        return choose(last, last, jnp.sum(last)), outputs
    return choose(
        outputs,
        jnp.mean(outputs),
        jnp.mean(outputs, axis=0),
        jnp.sum(jnp.square(outputs)),
        jnp.max(outputs, axis=0),
        jnp.mean(jnp.square(outputs)),
        jnp.diff(outputs, axis=0),
    )


PAIRS = {
    ("driven_oscillator", "Drive an oscillator by a series", "position", "velocity"): """
        position, velocity = carry
        velocity = velocity + RATE * choose(
            x - position - 0.1 * velocity, x - jnp.sin(position), -position + x * position
        )
        position = position + RATE * velocity
        choose(position, velocity, position * velocity, x - position)
        """,
    ("running_statistics", "Compute running statistics of a series", "mean", "variance"): """
        mean, variance = carry
        gap = x - mean
        mean = mean + RATE * gap
        variance = (1.0 - RATE) * (variance + RATE * gap**2)
        choose(gap, mean, gap / jnp.sqrt(variance + 0.1), variance)
        """,
    ("holt_smoothing", "Smooth a series with a trend", "level", "trend"): """
        level, trend = carry
        forecast = level + trend
        trend = trend + RATE * choose(x - forecast, (x - forecast) * 0.5)
        level = forecast + 0.5 * (x - forecast)
        choose(forecast, x - forecast, level, jnp.square(x - forecast))
        """,
    ("kalman_filter", "Filter a series by a scalar Kalman filter", "mean", "variance"): """
        mean, variance = carry
        gain = (variance + 0.1) / (variance + choose(1.1, 0.6))
        mean = mean + gain * (x - mean)
        variance = (1.0 - gain) * (variance + 0.1)
        choose(mean, gain * mean, x - mean, variance)
        """,
    ("biquad", "Filter a series by two states", "first", "second"): """
        first, second = carry
        filtered = 0.5 * x + first
        first = 0.3 * x - choose(0.2, 0.4) * filtered + second
        second = 0.2 * x + 0.1 * filtered
        choose(filtered, x - filtered, jnp.square(filtered))
        """,
    ("momentum_descent", "Follow a series with momentum", "value", "speed"): """
        value, speed = carry
        speed = 0.9 * speed + RATE * choose(x - value, jnp.tanh(x - value))
        value = value + speed
        choose(value, x - value, jnp.square(x - value), speed)
        """,
}


@template("scan of two states", "loops", 2)
def NAME(xs: F[N, S], initial: F[S], other: F[S, "positive"]):
    """TITLE."""
    N, S, RATE = size(3, 16), shape(0, 2, 12), choose(0.1, 0.05, 0.2)
    NAME, TITLE, FIRST, SECOND = choose(*PAIRS)
    CARRY = f"({FIRST}, {SECOND})"
    STEP = choose("step", "advance", "update")

    def STEP(carry, x: F[S]):
        output: F[S] = formula(PAIRS[(NAME, TITLE, FIRST, SECOND)])
        return CARRY, output

    if chance(0.2):
        last, outputs = lax.scan(STEP, (initial, other), xs, reverse=True)
    else:
        last, outputs = lax.scan(STEP, (initial, other), xs)
    if chance(0.3):
        return last
    if chance(0.4):
        return choose(last, last[0]), outputs
    return choose(
        outputs, jnp.mean(outputs, axis=0), jnp.sum(jnp.square(outputs)), jnp.std(outputs, axis=0)
    )


STEPS = {
    "diffuse": (
        "Diffuse values for N steps",
        """
        change = left + right - 2.0 * value
        choose(value + RATE * change, value + RATE * change + 0.01 * drive)
        """,
    ),
    "smooth_repeatedly": (
        "Smooth values N times",
        "choose(0.5 * value + 0.25 * (left + right), (left + value + right) / 3.0)",
    ),
    "advect": (
        "Move a profile with the flow",
        """
        choose(
            value - RATE * (value - left),
            value - 0.5 * RATE * (right - left),
            value - RATE * jnp.tanh(drive) * (right - left),
        )
        """,
    ),
    "forced_diffusion": (
        "Diffuse values that a source adds to",
        """
        source = choose(drive, jnp.tanh(drive), jnp.maximum(drive, 0.0))
        value + RATE * (source + left + right - 2.0 * value)
        """,
    ),
    "reaction_diffusion": (
        "Simulate a reaction with diffusion",
        """
        reaction = choose(value * (1.0 - jnp.square(value)), drive - jnp.tanh(value) ** 3)
        jnp.clip(value + RATE * (left + right - 2.0 * value + reaction), -3.0, 3.0)
        """,
    ),
    "logistic_map": (
        "Iterate a logistic map",
        """
        rate = choose(3.7 * jax.nn.sigmoid(drive), 3.0 + 0.5 * jnp.tanh(drive))
        share = jnp.clip(value, 0.0, 1.0)
        rate * share * (1.0 - share)
        """,
    ),
    "fixed_point": (
        "Iterate towards a fixed point",
        """
        choose(
            jnp.cos(value),
            0.5 * (value + jnp.cos(value)),
            jnp.tanh(drive + 0.5 * value),
            drive + 0.5 * jnp.sin(value),
            0.5 * (value + drive**2 / (jnp.abs(value) + 1.0)),
        )
        """,
    ),
    "anneal": (
        "Anneal values over N steps",
        """
        temperature = choose(1.0 / (i + 1), jnp.exp(-0.1 * i))
        (value + temperature * RATE * choose(drive, drive - value)).astype(value.dtype)
        """,
    ),
    "integrate": (
        "Integrate an equation of motion",
        """
        force = choose(smooth(value, drive), smooth(value))
        value + RATE * choose(jnp.tanh(force), force / (1.0 + jnp.abs(force)))
        """,
    ),
    "iterate_map": (
        "Iterate a map N times",
        """
        mapped_value = choose(smooth(value, drive), smooth(value))
        choose(jnp.tanh(mapped_value), 0.9 * value + 0.1 * jnp.tanh(mapped_value))
        """,
    ),
}


@template("fori loop", "loops", 3)
def NAME(x: F[S], drive: F[S]):
    """TITLE."""
    S, N, NAME = shape(1, 3, 16), between(2, 40), choose(*STEPS)
    TITLE, LINES = STEPS[NAME]
    STEP, RATE, A = choose("body", "step", "update"), choose(0.1, 0.2, 0.05), between(0, len(S) - 1)

    def STEP(i, value: F[S]):
        left = jnp.roll(value, 1, axis=A)
        right = jnp.roll(value, -1, axis=A)
        new: F[S] = formula(LINES)
        return new

    final: F[S] = lax.fori_loop(0, N, STEP, x)
    if chance(0.25):
        return final
    y: F[S] = choose(final, final - x, jnp.abs(final - x))
    return more(y, most=2, style="quantity")
