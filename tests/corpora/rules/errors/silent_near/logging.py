"""Values that are read now and then, after the loop, or of functions that nobody jits.

https://github.com/pyro-ppl/numpyro/pull/2247
"""

import jax
import jax.numpy as jnp


@jax.jit
def step(w, x):
    return w - 0.1 * x, jnp.sum(w * x)


def every_hundred(w, xs):
    for i, x in enumerate(xs):
        w, loss = step(w, x)
        if i % 100 == 0:
            print(i, float(loss))
    return w


def at_the_end(w, xs):
    losses = []
    for x in xs:
        w, loss = step(w, x)
        losses.append(loss)
    return w, [float(loss) for loss in losses]


def per_epoch(w, xs):
    for epoch in range(3):
        for x in xs:
            w, loss = step(w, x)
        print(epoch, float(loss))
    return w


def plain(w, xs):
    def move(w, x):
        return w - x, 0.5

    for x in xs:
        w, loss = move(w, x)
        print(float(loss))
    return w


def timed(w, x):
    for _ in range(3):
        w, loss = step(w, x)
        loss.block_until_ready()
    return w


def shapes(w, xs):
    for x in xs:
        w, loss = step(w, x)
        print(w.shape, loss.dtype)
    return w


def act(policy, env, steps):
    choose = jax.jit(policy)
    obs = env.reset()
    for _ in range(steps):
        action = choose(obs)
        obs = env.step(np_of(action))
    return obs


def np_of(a):
    return a
