"""Fit a ball that is kicked through air: the gradient is NaN from the first step."""

import diffrax
import jax
import jax.numpy as jnp


def field(t, state, parameters):
    _, velocity = state
    drag = parameters["drag"] * velocity * jnp.linalg.norm(velocity)
    return velocity, jnp.array([0.0, -9.81]) - drag


def loss(parameters, times, positions):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        t0=0.0,
        t1=1.0,
        dt0=0.1,
        y0=(jnp.zeros(2), parameters["kick"]),
        args=parameters,
        saveat=diffrax.SaveAt(ts=times),
    )
    return jnp.mean((solution.ys[0] - positions) ** 2)


@jax.jit
def step(parameters, times, positions):
    gradient = jax.grad(loss)(parameters, times, positions)
    return jax.tree.map(lambda value, slope: value - 0.1 * slope, parameters, gradient)


times = jnp.linspace(0.0, 1.0, 8)
positions = jnp.stack([3.0 * times, 4.0 * times - 4.9 * times**2], axis=1)
parameters = {"drag": jnp.array(0.1), "kick": jnp.zeros(2)}
for _ in range(3):
    parameters = step(parameters, times, positions)
print(parameters)
