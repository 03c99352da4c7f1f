"""Templates of formulas of mechanics, images and signals.

A formula has a title, and lines of a snippet, whose last one is its value.
"""

from __future__ import annotations

from jaxsight_dataset.generating.snippets import template

MECHANICS = {
    "kinetic_energy": (
        "Compute kinetic energies",
        """
        choose(
            0.5 * mass * velocity**2,
            0.5 * mass * jnp.square(velocity),
            (mass * velocity) ** 2 / (2.0 * mass),
            0.5 * (mass * velocity**2 + other_mass * other_velocity**2),
        )
        """,
    ),
    "energy": (
        "Compute total energies",
        """
        kinetic = choose(0.5 * mass * velocity**2, 0.5 * mass * jnp.square(velocity))
        potential = choose(
            mass * G * height, 0.5 * stiffness * position**2, mass * G * (height - position)
        )
        kinetic + potential
        """,
    ),
    "lagrangian": (
        "Compute a Lagrangian",
        """
        kinetic = choose(0.5 * mass * velocity**2, 0.5 * mass * jnp.square(velocity))
        potential = choose(
            mass * G * height, 0.5 * stiffness * position**2, mass * G * (height - position)
        )
        kinetic - potential
        """,
    ),
    "projectile_height": (
        "Compute heights of projectiles",
        """
        fall = choose(0.5 * G * time**2, 0.5 * G * jnp.square(time))
        rise = height + velocity * time
        choose(rise - fall, jnp.maximum(rise - fall, 0.0))
        """,
    ),
    "spring_force": (
        "Compute forces",
        """
        spring = choose(-stiffness * position, stiffness * (height - position))
        choose(
            spring, spring - damping * velocity, spring - damping * velocity * jnp.abs(velocity)
        )
        """,
    ),
    "elastic_collision": (
        "Compute velocities after an elastic collision",
        """
        total = mass + other_mass
        choose(
            ((mass - other_mass) * velocity + 2.0 * other_mass * other_velocity) / total,
            velocity - 2.0 * other_mass / total * (velocity - other_velocity),
            (mass * velocity + other_mass * other_velocity) / total,
        )
        """,
    ),
    "drag_force": (
        "Compute drag forces",
        """
        wind = choose(velocity, velocity - other_velocity)
        pressure = 0.5 * 1.2 * wind * jnp.abs(wind)
        choose(-damping * pressure, -damping * pressure / mass)
        """,
    ),
    "stopping_distance": (
        "Compute stopping distances",
        """
        friction = 0.3 + damping
        braking = choose(velocity**2, jnp.square(velocity)) / (2.0 * friction * G)
        choose(braking, braking + jnp.abs(velocity) * time)
        """,
    ),
    "center_of_mass": (
        "Compute the center of two masses",
        """
        total = mass + other_mass
        choose(
            (mass * position + other_mass * height) / total,
            position + other_mass / total * (height - position),
        )
        """,
    ),
    "oscillator_step": (
        "Advance damped oscillators by one step",
        """
        acceleration = -(stiffness * position + damping * velocity) / mass
        new_velocity = velocity + DT * acceleration
        position + DT * choose(velocity, new_velocity)
        """,
    ),
    "verlet_step": (
        "Advance positions by one step of velocity Verlet",
        """
        acceleration = choose(
            -stiffness * position / mass, -stiffness * position - damping * velocity
        )
        position + velocity * DT + 0.5 * acceleration * DT**2
        """,
    ),
    "gravity": (
        "Compute the attraction of two masses",
        """
        gap = choose(position - height, jnp.abs(position) + height)
        choose(
            mass * other_mass / (gap**2 + 0.1),
            -mass * other_mass * gap / (gap**2 + 0.1) ** 1.5,
            -mass * other_mass * lax.rsqrt(gap**2 + 0.1),
        )
        """,
    ),
}


@template("mechanics", "arithmetic", 3)
def NAME(
    mass: F[S, "positive"],
    other_mass: F[S[K:], "positive"],
    velocity: F[S],
    other_velocity: F[S[K:]],
    position: F[S],
    height: F[S, "positive"],
    time: F[S[K:], "positive"],
    stiffness: F[(), "positive"],
    damping: F[(), "uniform"],
):
    """TITLE."""
    S = shape(0, 4)
    K = choose(0, 0, between(0, len(S)))
    DT, G = (choose(0.01, 0.05, 0.1), choose(9.81, 9.80665, 9.8))
    NAME = choose(*MECHANICS)
    TITLE, LINES = MECHANICS[NAME]
    y: F[S] = formula(LINES)
    return more(y, most=2, style="quantity")


IMAGES_AND_SIGNALS = {
    "alpha_blend": (
        "Blend an image with a background",
        """
        choose(
            alpha * image + (1.0 - alpha) * background,
            background + alpha * (image - background),
            jnp.where(alpha > 0.5, image, background),
        )
        """,
    ),
    "adjust": (
        "Adjust the contrast",
        """
        adjusted = choose(
            gain * (image - 0.5) + 0.5,
            gain * image + choose(0.1, -0.1, 0.05),
            (image - jnp.mean(image)) * gain + jnp.mean(image),
        )
        choose(adjusted, jnp.clip(adjusted, 0.0, 1.0))
        """,
    ),
    "gamma_correct": (
        "Apply a gamma curve",
        """
        lifted = image + 0.01
        choose(lifted ** (1.0 / 2.2), lifted**2.2, lifted**gain, jnp.power(lifted, gain))
        """,
    ),
    "invert": (
        "Invert an image",
        """
        choose(1.0 - image, jnp.where(image > alpha, image, 1.0 - image))
        """,
    ),
    "vignette": (
        "Darken an image by a mask",
        """
        mask = choose(jnp.exp(-gain * alpha**2), 1.0 - 0.5 * alpha, jnp.cos(alpha) ** 4)
        choose(image * mask, jnp.sqrt(image * mask + 0.001))
        """,
    ),
    "screen": (
        "Combine two images as on a screen",
        """
        choose(
            1.0 - (1.0 - image) * (1.0 - background),
            jnp.where(background < 0.5, 2.0 * image * background, image + background - 0.5),
            jnp.maximum(image, background),
            jnp.minimum(image + background, 1.0),
        )
        """,
    ),
    "modulate": (
        "Modulate the amplitude of a carrier",
        """
        depth = choose(0.5, 0.8, 0.3)
        choose(
            (1.0 + depth * signal) * carrier,
            carrier * signal,
            jnp.sin(carrier + depth * signal),
            jnp.cos(gain * carrier) * (1.0 + depth * signal),
        )
        """,
    ),
    "mix": (
        "Mix a signal with its echo",
        """
        echo = jnp.roll(signal, choose(1, 2, 3), axis=-1)
        choose(signal + 0.5 * echo, 0.7 * signal + 0.3 * echo, signal - gain * echo)
        """,
    ),
    "soft_clip": (
        "Clip a signal smoothly",
        """
        driven = gain * signal
        choose(
            jnp.tanh(driven),
            driven / (1.0 + jnp.abs(driven)),
            jnp.tanh(driven) / jnp.tanh(gain),
            2.0 / jnp.pi * jnp.arctan(driven),
            jnp.clip(driven - driven**3 / 3.0, -2.0, 2.0),
        )
        """,
    ),
    "preemphasis": (
        "Emphasize high frequencies",
        """
        delayed = jnp.roll(signal, 1, axis=-1)
        choose(signal - 0.97 * delayed, signal - 0.95 * delayed)
        """,
    ),
    "crossfade": (
        "Fade one signal into another",
        """
        choose(
            (1.0 - alpha) * signal + alpha * noise,
            jnp.sqrt(1.0 - alpha) * signal + jnp.sqrt(alpha + 0.001) * noise,
            jnp.cos(0.5 * jnp.pi * alpha) * signal + jnp.sin(0.5 * jnp.pi * alpha) * noise,
        )
        """,
    ),
    "gate": (
        "Silence quiet parts of a signal",
        """
        level = choose(jnp.abs(signal), jnp.square(signal))
        choose(
            jnp.where(level > choose(0.1, 0.3), signal, 0.0),
            jnp.where(level > jnp.mean(level), signal, 0.1 * signal),
            signal * jax.nn.sigmoid(10.0 * (level - 0.3)),
        )
        """,
    ),
    "denoise": (
        "Shrink small values towards zero",
        """
        choose(
            jnp.sign(signal) * jnp.maximum(jnp.abs(signal) - 0.2, 0.0),
            signal * jnp.square(signal) / (jnp.square(signal) + gain),
            jnp.where(jnp.abs(signal) > 0.5, signal, 0.0),
            0.9 * signal + 0.1 * jnp.roll(signal, 1, axis=-1),
        )
        """,
    ),
    "difference": (
        "Compare two images",
        """
        change = image - background
        choose(jnp.abs(change), jnp.square(change), change / (image + background + 0.1))
        """,
    ),
    "srgb": (
        "Convert linear intensities to sRGB",
        """
        curved = 1.055 * jnp.power(image + 0.001, 1.0 / 2.4) - 0.055
        jnp.where(image < 0.0031, 12.92 * image, curved)
        """,
    ),
    "unsharp": (
        "Sharpen an image",
        """
        blurred = 0.5 * image + 0.25 * (
            jnp.roll(image, 1, axis=0) + jnp.roll(image, -1, axis=0)
        )
        sharpened = image + choose(0.5, 1.0, 1.5) * (image - blurred)
        choose(sharpened, jnp.clip(sharpened, 0.0, 1.0))
        """,
    ),
}


@template("images and signals", "arithmetic", 3)
def NAME(
    image: F[S, "uniform"],
    background: F[S, "uniform"],
    alpha: F[S[K:], "uniform"],
    signal: F[S],
    noise: F[S],
    carrier: F[S[K:]],
    gain: F[(), "positive"],
):
    """TITLE."""
    S = shape(1, 4)
    K = choose(0, 0, between(0, len(S)))
    NAME = choose(*IMAGES_AND_SIGNALS)
    TITLE, LINES = IMAGES_AND_SIGNALS[NAME]
    y: F[S] = formula(LINES)
    return more(y, most=2, style="quantity")
