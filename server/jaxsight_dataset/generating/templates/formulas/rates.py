"""Templates of formulas of rates and prices.

A formula has a title, and lines of a snippet, whose last one is its value.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

RATES_AND_PRICES = {
    "michaelis_menten": (
        "Compute reaction rates",
        """
        choose(limit * amount / (half + amount), amount / (half + amount))
        """,
    ),
    "hill": (
        "Compute Hill's occupancy",
        """
        powered = choose(amount**2, amount**3, amount**4)
        choose(powered / (half**2 + powered), limit * powered / (1.0 + powered))
        """,
    ),
    "logistic_growth": (
        "Compute growth rates of populations",
        """
        crowding = 1.0 - amount / limit
        choose(
            rate * amount * crowding,
            rate * amount * crowding - 0.1 * amount,
            rate * amount * crowding * (amount / half - 1.0),
        )
        """,
    ),
    "inhibition": (
        "Compute rates",
        """
        apparent = half * (1.0 + predators / limit)
        choose(amount / (apparent + amount), amount / (half + amount + amount**2 / limit))
        """,
    ),
    "prey_rate": (
        "Compute the rate of change of prey",
        """
        eaten = choose(0.5 * amount * predators, amount * predators / (1.0 + 0.5 * amount))
        choose(rate * amount - eaten, rate * amount * (1.0 - amount / limit) - eaten)
        """,
    ),
    "infections": (
        "Compute new infections",
        """
        contacts = amount * predators / (amount + predators)
        choose(rate * contacts, rate * contacts - 0.1 * predators)
        """,
    ),
    "arrhenius": (
        "Compute rate constants",
        """
        choose(
            limit * jnp.exp(-half / amount),
            jnp.exp(-half / amount),
            jnp.exp(half - half / amount),
        )
        """,
    ),
    "absorption": (
        "Compute transmitted intensities",
        """
        depth = choose(half * years, (half + limit) * years)
        choose(amount * jnp.exp(-depth), amount * (1.0 - jnp.exp(-depth)))
        """,
    ),
    "discounted": (
        "Discount payments",
        """
        factor = choose(
            jnp.exp(-rate * years), (1.0 + rate) ** (-years), 1.0 / (1.0 + rate * years)
        )
        choose(amount * factor, amount * factor - price)
        """,
    ),
    "compound": (
        "Compute compound interest",
        """
        choose(
            amount * (1.0 + rate) ** years,
            amount * (1.0 + rate / 12.0) ** (12.0 * years),
            amount * jnp.exp(rate * years),
            amount * (jnp.exp(rate * years) - 1.0),
        )
        """,
    ),
    "payoff": (
        "Compute payoffs of options",
        """
        choose(
            jnp.maximum(price - strike, 0.0),
            jnp.maximum(strike - price, 0.0),
            jnp.abs(price - strike),
            jnp.maximum(price - strike, 0.0) - jnp.maximum(price - 1.2 * strike, 0.0),
            jnp.exp(-rate) * jnp.maximum(price - strike, 0.0),
        )
        """,
    ),
    "tax": (
        "Compute taxes of two brackets",
        """
        lower = jnp.minimum(amount, limit)
        upper = jnp.maximum(amount - limit, 0.0)
        choose(0.2 * lower + 0.4 * upper, rate * lower + 0.4 * upper)
        """,
    ),
    "returns": (
        "Compute relative changes of prices",
        """
        choose(
            price / strike - 1.0,
            (price - strike) / strike,
            jnp.log(price / strike),
            jnp.log(price) - jnp.log(strike),
        )
        """,
    ),
    "cooling": (
        "Compute temperatures",
        """
        choose(
            limit + (amount - limit) * jnp.exp(-rate * years), amount - rate * (amount - limit)
        )
        """,
    ),
    "spread": (
        "Compute relative spreads",
        """
        middle = 0.5 * (price + strike)
        choose((price - strike) / middle, jnp.abs(price - strike) / middle)
        """,
    ),
    "utility": (
        "Compute utilities of consumption",
        """
        choose(
            jnp.log(amount),
            2.0 * jnp.sqrt(amount),
            1.0 - jnp.exp(-amount / limit),
            (amount**0.5 - 1.0) / 0.5,
            jnp.log(amount) - rate * years,
        )
        """,
    ),
}


@template("rates and prices", "arithmetic", 3)
def NAME(
    amount: F[S, "positive"],
    limit: F[S[K:], "positive"],
    half: F[S[K:], "positive"],
    price: F[S, "positive"],
    strike: F[S[K:], "positive"],
    years: F[S, "positive"],
    rate: F[(), "uniform"],
    predators: F[S, "positive"],
):
    """TITLE."""
    S = shape(0, 4)
    K = choose(0, 0, between(0, len(S)))
    NAME = choose(*RATES_AND_PRICES)
    TITLE, LINES = RATES_AND_PRICES[NAME]
    y: F[S] = formula(LINES)
    return more(y, most=2, style="quantity")
