"""Templates of loops over a series or over steps.

The lines of a recurrence end with what its carry becomes.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

SERIES = {
    "state_space": (
        "Run a state-space model over a series",
        """
        rotated = carry @ weights / sqrt(S[-1]) if S else DECAY * carry
        choose(rotated + x, jnp.tanh(rotated + x), DECAY * rotated + RATE * x)
        """,
    ),
    "gated_recurrence": (
        "Run a gated linear recurrence",
        """
        gate = choose(jax.nn.sigmoid(x), jnp.exp(-jax.nn.softplus(x)), jax.nn.sigmoid(x + 1.0))
        choose(gate * carry + (1.0 - gate) * x, gate * carry + x)
        """,
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
        outputs, jnp.mean(outputs, axis=0), jnp.sum(jnp.square(outputs)), jnp.diff(outputs, axis=0)
    )


STEPS = {
    "diffuse": (
        "Diffuse values for N steps",
        """
        change = left + right - 2.0 * value
        choose(value + RATE * change, value + RATE * change + 0.01 * drive)
        """,
    ),
    "reaction_diffusion": (
        "Simulate a reaction with diffusion",
        """
        reaction = choose(value * (1.0 - jnp.square(value)), drive - jnp.tanh(value) ** 3)
        jnp.clip(value + RATE * (left + right - 2.0 * value + reaction), -3.0, 3.0)
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
