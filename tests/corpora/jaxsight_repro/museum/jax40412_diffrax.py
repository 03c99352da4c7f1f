"""jax#40412 in a training step of a neural differential equation, after a spectral product."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMIZER = optax.adabelief(1e-3)


def build():
    return eqx.nn.MLP(4, 4, 16, 2, activation=jax.nn.softplus, key=jax.random.key(0))


def main(parameters, state, modes, weights, times, observed):
    shapes = eqx.filter_eval_shape(build)
    static = eqx.partition(shapes, lambda x: isinstance(x, jax.ShapeDtypeStruct))[1]
    field = jnp.sum(modes * weights, axis=3)
    forcing = jnp.tanh(jnp.max(field, axis=(0, 1, 4, 5)).reshape(-1)[:4])

    def loss(parameters):
        model = eqx.combine(parameters, static)
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: model(y) + forcing),
            diffrax.Tsit5(),
            t0=0.0,
            t1=1.0,
            dt0=0.1,
            y0=observed[0],
            saveat=diffrax.SaveAt(ts=times),
            max_steps=64,
        )
        return jnp.mean((solution.ys - observed) ** 2)

    value, gradient = jax.value_and_grad(loss)(parameters)
    updates, state = OPTIMIZER.update(gradient, state, parameters)
    return optax.apply_updates(parameters, updates), state, value


def inputs():
    rng = np.random.default_rng(0)
    parameters = eqx.filter(build(), eqx.is_array)
    shape = (3, 1, 2, 2, 8, 8, 8)
    return (
        parameters,
        OPTIMIZER.init(parameters),
        rng.normal(size=shape).astype("f4"),
        rng.normal(size=shape).astype("f4"),
        np.linspace(0, 1, 6, dtype="f4"),
        rng.normal(size=(6, 4)).astype("f4"),
    )


if __name__ == "__main__":
    jax.block_until_ready(jax.jit(main)(*inputs()))
