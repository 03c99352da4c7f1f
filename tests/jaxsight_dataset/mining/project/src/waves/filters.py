"""Filters with example inputs of each kind."""

from __future__ import annotations

import os
from typing import NamedTuple

import jax
import jax.numpy as jnp


class Float:
    """Stands for jaxtyping's class, which need not be installed."""

    def __class_getitem__(cls, item: object) -> object:
        return item


def damped(signal, rate):
    """Damp a signal.

    Example inputs:
        signal: f32[8, n]
        rate: f32[]
    """
    return signal * jnp.exp(-rate)


def energy(signal: Float[jax.Array, "n 3"]):
    """Return the energy of each row."""
    return jnp.sum(signal**2, axis=1)


def smoothed(signal):
    """Return the means of neighbours."""
    return 0.5 * (signal[1:] + signal[:-1])


def doubled(signal):
    """Double a signal.

    >>> doubled(jnp.arange(5.0))
    Array([0., 2., 4., 6., 8.], dtype=float32)
    """
    return 2.0 * signal


class Gain:
    """A gain.

    Example inputs:
        self = Gain(3.0)
    """

    def __init__(self, factor):
        self.factor = factor

    def applied(self, signal):
        """Amplify a signal.

        Example inputs:
            signal: f32[4]
        """
        return self.factor * jnp.tanh(signal)


def branching(signal):
    """Cannot be traced.

    Example inputs:
        signal: f32[3]
    """
    return signal if signal.sum() > 0 else -signal


def unknown(signal):
    """Cannot be called.

    Example inputs:
        signal = missing(3)
    """
    return signal


def declared(signal):
    """Needs the devices of its example inputs.

    Example inputs:
        mesh: data=2
        signal: f32[8@data]
    """
    return jnp.sin(signal)


def distributed(signal):
    """Needs the devices of its own mesh.

    Example inputs:
        signal: f32[8]
    """
    mesh = jax.make_mesh((4,), ("data",))
    return jax.device_put(signal, jax.NamedSharding(mesh, jax.P("data")))


def scaled(factor):
    """Has no array.

    Example inputs:
        factor: 3
    """
    return 2 * factor


def crashing(signal):
    """End the process.

    Example inputs:
        signal: f32[3]
    """
    os._exit(3)


def crashing_example(signal):
    """End the process in a doctest.

    >>> import os; os._exit(4)
    """
    return signal


def public(signal):
    """Belong to another module by name, and use NumPy without an import.

    >>> public(jnp.asarray(np.arange(7.0)))
    Array(2., dtype=float32)
    """
    return jnp.std(signal)


public.__module__ = "waves"


def keyed(table):
    """Read a table with keys of several types.

    >>> keyed({1: jnp.arange(3.0), "one": 2})
    Array([0., 1., 2.], dtype=float32)
    """
    return table[1]


class Filter(NamedTuple):
    """A filter with a state, as two functions."""

    init: object
    update: object


def leaky(rate):
    """Return a filter that forgets.

    >>> kept = leaky(0.5)
    >>> state = kept.init(jnp.ones(4))
    >>> state = kept.update(jnp.ones(4), (jnp.array(0), state), jnp.ones(4))
    """

    def init(signal):
        return jnp.cos(signal)

    def update(signal, state, parameters):
        """Return the next state; an unused array and a constant result are left out."""
        count, level = state
        del parameters
        return count + 1, rate * level + jnp.sin(signal), jnp.zeros(3)

    return Filter(init, update)
