"""Templates of formulas of mechanics, rates, prices and signals.

A formula has a title, and lines of a snippet, whose last one is its value.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

QUANTITIES = {
    "energy": (
        "Compute total energies",
        """
        kinetic = choose(0.5 * mass * velocity**2, 0.5 * mass * jnp.square(velocity))
        kinetic + choose(9.81 * mass * amount, 0.5 * rate * position**2)
        """,
    ),
    "drag_force": (
        "Compute drag forces",
        """
        wind = choose(velocity, velocity - position)
        choose(-0.6 * rate * wind * jnp.abs(wind), -0.6 * rate * wind * jnp.abs(wind) / mass)
        """,
    ),
    "oscillator_step": (
        "Advance damped oscillators by one step",
        """
        acceleration = -(rate * position + 0.1 * velocity) / mass
        new_velocity = velocity + DT * acceleration
        position + DT * choose(velocity, new_velocity, 0.5 * (velocity + new_velocity))
        """,
    ),
    "gravity": (
        "Compute the attraction of two masses",
        """
        squares = choose((position - velocity) ** 2 + 0.1, position**2 + DT)
        choose(mass * limit / squares, -mass * limit * lax.rsqrt(squares), mass / squares**1.5)
        """,
    ),
    "discounted": (
        "Discount payments",
        """
        factor = choose(jnp.exp(-rate * mass), (1.0 + rate) ** (-mass), 1.0 / (1.0 + rate * mass))
        choose(amount * factor, amount * factor - limit)
        """,
    ),
    "payoff": (
        "Compute payoffs of options",
        """
        choose(
            jnp.maximum(amount - limit, 0.0),
            jnp.exp(-rate) * jnp.maximum(limit - amount, 0.0),
            jnp.maximum(amount - limit, 0.0) - jnp.maximum(amount - 1.2 * limit, 0.0),
        )
        """,
    ),
    "brighten": (
        "Apply a gamma curve",
        """
        lifted = share + 0.01
        choose(lifted**rate, jnp.where(share < 0.0031, 12.92 * share, lifted ** (1.0 / 2.4)))
        """,
    ),
}


@template("quantities", "arithmetic", 6)
def NAME(
    position: F[S],
    velocity: F[S],
    mass: F[S, "positive"],
    amount: F[S, "positive"],
    limit: F[S[K:], "positive"],
    share: F[S, "uniform"],
    rate: F[(), "positive"],
):
    """TITLE."""
    S, DT, NAME = shape(0, 4), choose(0.01, 0.05, 0.1), choose(*QUANTITIES)
    K = choose(0, 0, between(0, len(S)))
    TITLE, LINES = QUANTITIES[NAME]
    y: F[S] = formula(LINES)
    return more(y, most=2, style="quantity")
