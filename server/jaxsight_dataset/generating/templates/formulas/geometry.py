"""Templates of formulas of angles, distances and hyperbolic functions.

A formula has a title, and lines of a snippet, whose last one is its value.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

ANGLES_AND_DISTANCES = {
    "haversine": (
        "Compute distances on a sphere",
        """
        half_lat = jnp.sin(0.5 * (lat2 - lat1))
        half_lon = jnp.sin(0.5 * (lon2 - lon1))
        chord = half_lat**2 + jnp.cos(lat1) * jnp.cos(lat2) * half_lon**2
        2.0 * radius * jnp.arcsin(jnp.sqrt(0.99 * chord + 0.001))
        """,
    ),
    "great_circle": (
        "Compute central angles",
        """
        aligned = jnp.sin(lat1) * jnp.sin(lat2) + jnp.cos(lat1) * jnp.cos(lat2) * jnp.cos(
            lon1 - lon2
        )
        choose(jnp.arccos(0.99 * aligned), radius * jnp.arccos(0.99 * aligned))
        """,
    ),
    "bearing": (
        "Compute initial bearings",
        """
        east = jnp.sin(lon2 - lon1) * jnp.cos(lat2)
        north = jnp.cos(lat1) * jnp.sin(lat2) - jnp.sin(lat1) * jnp.cos(lat2) * jnp.cos(
            lon2 - lon1
        )
        angle = jnp.arctan2(east, north)
        choose(angle, jnp.rad2deg(angle), jnp.cos(angle))
        """,
    ),
    "polar": (
        "Convert to polar coordinates",
        """
        length = choose(jnp.hypot(x, y), jnp.sqrt(x**2 + y**2))
        angle = jnp.arctan2(y, x)
        choose(length * jnp.cos(2.0 * angle), jnp.exp(-length) * jnp.sin(angle), angle)
        """,
    ),
    "mercator": (
        "Project latitudes",
        """
        choose(
            jnp.arcsinh(jnp.tan(lat1)),
            jnp.log(jnp.tan(0.25 * jnp.pi + 0.5 * lat1)),
            radius * jnp.arctanh(jnp.sin(lat1)),
            2.0 * jnp.arctan(jnp.tanh(0.5 * lon1)),
        )
        """,
    ),
    "wrapped_difference": (
        "Compute angles between angles",
        """
        gap = lon1 - lon2
        choose(
            jnp.arctan2(jnp.sin(gap), jnp.cos(gap)),
            jnp.abs(jnp.arctan2(jnp.sin(gap), jnp.cos(gap))),
            2.0 * jnp.arctan(jnp.tan(0.2 * gap)),
            1.0 - jnp.cos(gap),
        )
        """,
    ),
    "angle_between": (
        "Compute angles from cosines",
        """
        choose(
            jnp.arccos(cosine),
            jnp.rad2deg(jnp.arccos(cosine)),
            1.0 - jnp.arccos(cosine) / jnp.pi,
            jnp.arcsin(cosine),
            0.5 * jnp.pi - jnp.arcsin(cosine),
            jnp.sin(jnp.arccos(cosine)),
        )
        """,
    ),
    "elevation": (
        "Compute elevations",
        """
        ground = jnp.hypot(x, y) + radius
        choose(
            jnp.arctan(lat1 / ground),
            jnp.rad2deg(jnp.arctan2(lat1, ground)),
            jnp.arctan2(x, ground),
        )
        """,
    ),
    "refraction": (
        "Compute angles of refraction",
        """
        ratio = choose(1.33, 1.5)
        choose(
            jnp.arcsin(jnp.sin(lat1) / ratio),
            jnp.tan(jnp.arcsin(jnp.sin(lat1) / ratio)),
            jnp.square(jnp.tan(0.5 * lat1)),
            jnp.sqrt(1.0 - (jnp.sin(lat1) / ratio) ** 2),
        )
        """,
    ),
    "cartesian": (
        "Convert to coordinates",
        """
        choose(
            radius * jnp.cos(lat1) * jnp.cos(lon1),
            radius * jnp.cos(lat1) * jnp.sin(lon1),
            jnp.cos(lat1) * jnp.cos(lon1) + jnp.sin(lat1),
        )
        """,
    ),
    "rotated": (
        "Rotate points",
        """
        cosine_of = jnp.cos(lon1)
        sine_of = jnp.sin(lon1)
        choose(cosine_of * x - sine_of * y, sine_of * x + cosine_of * y)
        """,
    ),
    "arc_distance": (
        "Compute distances from cosines",
        """
        choose(
            jnp.arccos(cosine) ** 2,
            radius * jnp.arccos(jnp.clip(cosine, -0.95, 0.95)),
            jnp.sqrt(2.0 - 2.0 * cosine),
            2.0 * jnp.arcsin(jnp.sqrt(0.5 - 0.5 * cosine)),
        )
        """,
    ),
    "tangent_projection": (
        "Project a sphere on a plane",
        """
        choose(
            2.0 * jnp.tan(0.5 * lat1) * jnp.cos(lon1),
            2.0 * radius * jnp.tan(0.5 * lat1),
            jnp.tan(lat1) * radius,
            jnp.tan(0.25 * jnp.pi - 0.5 * lat1) * jnp.sin(lon1),
        )
        """,
    ),
}


@template("angles and distances", "math", 9)
def NAME(
    lat1: F[S, "unit"],
    lon1: F[S],
    lat2: F[S, "unit"],
    lon2: F[S],
    x: F[S],
    y: F[S],
    radius: F[(), "positive"],
    cosine: F[S, "unit"],
):
    """TITLE."""
    S = shape(0, 3)
    OFTEN = ["angle_between", "angle_between", "arc_distance", "refraction", "great_circle"]
    NAME = choose(*ANGLES_AND_DISTANCES, *OFTEN, "tangent_projection", "haversine")
    TITLE, LINES = ANGLES_AND_DISTANCES[NAME]
    z: F[S] = formula(LINES)
    return more(z, most=2, style="quantity")


HYPERBOLIC_FUNCTIONS = {
    "rapidity": (
        "Compute rapidities",
        """
        choose(
            jnp.arctanh(speed),
            0.5 * jnp.log((1.0 + speed) / (1.0 - speed)),
            jnp.arcsinh(speed / jnp.sqrt(1.0 - speed**2)),
            jnp.cosh(jnp.arctanh(speed)),
        )
        """,
    ),
    "boosted": (
        "Boost coordinates to a moving frame",
        """
        factor = choose(1.0 / jnp.sqrt(1.0 - speed**2), lax.rsqrt(1.0 - speed**2))
        factor * choose(x - speed * y, y - speed * x)
        """,
    ),
    "poincare_distance": (
        "Compute distances in hyperbolic space",
        """
        gap = choose((speed - correlation) ** 2, jnp.square(speed - correlation))
        room = (1.0 - speed**2) * (1.0 - correlation**2)
        choose(jnp.arccosh(1.01 + 2.0 * gap / room), jnp.arccosh(1.01 + gap / room) ** 2)
        """,
    ),
    "half_plane_distance": (
        "Compute distances",
        """
        choose(
            jnp.arccosh(1.01 + x**2 / (2.0 * height * scale)),
            2.0 * jnp.arcsinh(0.5 * jnp.abs(x) / jnp.sqrt(height * scale)),
        )
        """,
    ),
    "inverse_cosh": (
        "Invert hyperbolic cosines",
        """
        grown = choose(height + 1.0, 1.1 + jnp.square(x))
        choose(
            jnp.arccosh(grown),
            jnp.log(grown + jnp.sqrt(grown**2 - 1.0)),
            scale * jnp.arccosh(grown),
        )
        """,
    ),
    "catenary": (
        "Compute the shape of a hanging chain",
        """
        choose(
            scale * jnp.cosh(speed / scale),
            scale * (jnp.cosh(speed / scale) - 1.0),
            scale * jnp.sinh(speed / scale),
            jnp.sinh(speed),
        )
        """,
    ),
    "fisher_z": (
        "Transform correlations",
        """
        choose(
            jnp.arctanh(correlation),
            scale * jnp.arctanh(correlation),
            jnp.tanh(jnp.arctanh(correlation) - 0.1),
            jnp.arctanh(correlation) - jnp.arctanh(speed),
        )
        """,
    ),
    "soliton": (
        "Compute a solitary wave",
        """
        choose(scale / jnp.cosh(speed) ** 2, 1.0 / jnp.cosh(scale * speed), jnp.tanh(scale * x))
        """,
    ),
    "water_wave": (
        "Compute phase velocities of waves",
        """
        choose(
            jnp.sqrt(9.81 / scale * jnp.tanh(scale * height)),
            jnp.tanh(height) / height,
            height / jnp.sinh(height),
            9.81 * scale * jnp.tanh(scale * height),
        )
        """,
    ),
    "asinh_stretch": (
        "Stretch intensities",
        """
        choose(
            jnp.arcsinh(10.0 * x) / jnp.arcsinh(10.0),
            jnp.arcsinh(x / scale),
            jnp.sinh(speed / scale),
            scale * jnp.arcsinh(x),
            jnp.arcsinh(x) - jnp.arcsinh(y),
        )
        """,
    ),
    "log_cosh": (
        "Compute a smooth absolute value",
        """
        gap = choose(x - y, speed - correlation)
        choose(
            jnp.logaddexp(gap, -gap) - jnp.log(2.0), jnp.log(jnp.cosh(jnp.clip(gap, -5.0, 5.0)))
        )
        """,
    ),
    "magnetization": (
        "Compute magnetizations",
        """
        choose(
            jnp.tanh(height / scale),
            1.0 / jnp.tanh(height) - 1.0 / height,
            jnp.sinh(speed) / jnp.sqrt(jnp.sinh(speed) ** 2 + jnp.exp(-4.0 * scale)),
        )
        """,
    ),
    "arc_length": (
        "Compute lengths of arcs",
        """
        slope = jnp.sqrt(1.0 + x**2)
        choose(
            0.5 * (x * slope + jnp.arcsinh(x)),
            0.5 * jnp.log(x + 1.1 * slope),
            slope * jnp.sinh(speed),
        )
        """,
    ),
}


@template("hyperbolic functions", "math", 9)
def NAME(
    speed: F[S, "unit"],
    x: F[S],
    y: F[S],
    height: F[S, "positive"],
    correlation: F[S, "unit"],
    scale: F[(), "positive"],
):
    """TITLE."""
    S = shape(0, 3)
    OFTEN = ["poincare_distance", "inverse_cosh", "inverse_cosh", "fisher_z", "fisher_z"]
    NAME = choose(*HYPERBOLIC_FUNCTIONS, *OFTEN, "catenary", "rapidity", "soliton")
    TITLE, LINES = HYPERBOLIC_FUNCTIONS[NAME]
    z: F[S] = formula(LINES)
    return more(z, most=2, style="quantity")
